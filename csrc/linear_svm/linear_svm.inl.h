#include "linear_svm/passes.inl.h"

#include "linear_svm/gram.inl.h"
