#include "kmeans/dense.inl.h"
#include "kmeans/sparse.inl.h"
#include "kmeans/sums.inl.h"
