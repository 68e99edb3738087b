// Sums of the rows of each cluster, in double: the blocks.
// sums[p] += w * (x[p] - shift[p]) for columns [p0, p1).
template <class T>
FML_INLINE void add_row(const T* x, const T* shift, double w, std::ptrdiff_t p0, std::ptrdiff_t p1,
                        double* sums) {
    if (shift) {
        for (std::ptrdiff_t p = p0; p < p1; ++p)
            sums[p] += w * static_cast<double>(x[p] - shift[p]);
    } else {
        for (std::ptrdiff_t p = p0; p < p1; ++p) sums[p] += w * static_cast<double>(x[p]);
    }
}

template <class T>
void sum_block(const Rows<T>& X, const T* w, const std::int32_t* labels, std::ptrdiff_t begin,
               std::ptrdiff_t end, double* sums, double* weights) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double wi = w ? w[i] : 1;
        add_row(X.data + i * X.d, X.shift, wi, 0, X.d, sums + labels[i] * X.d);
        weights[labels[i]] += wi;
    }
}

// Columns [p0, p1) of one cluster, whose rows are listed in ascending order.
template <class T>
void sum_listed(const Rows<T>& X, const T* w, const std::int32_t* rows, std::ptrdiff_t n_rows,
                std::ptrdiff_t p0, std::ptrdiff_t p1, double* sums) {
    constexpr std::ptrdiff_t ahead = 6, line = 64 / sizeof(T);  // rows lie anywhere in memory
    for (std::ptrdiff_t p = p0; p < p1; ++p) sums[p] = 0;
    for (std::ptrdiff_t r = 0; r < n_rows; ++r) {
        const T* next = X.data + rows[r + ahead < n_rows ? r + ahead : n_rows - 1] * X.d;
        for (std::ptrdiff_t p = p0; p < p1; p += line) FML_PREFETCH_NEXT(next + p);
        add_row(X.data + rows[r] * X.d, X.shift, w ? double(w[rows[r]]) : 1.0, p0, p1, sums);
    }
}

// Columns [p0, p1) of one cluster's sums: adds the listed rows, takes those listed as ~row.
template <class T>
void sum_moved(const Rows<T>& X, const T* w, const std::int32_t* rows, std::ptrdiff_t n_rows,
               std::ptrdiff_t p0, std::ptrdiff_t p1, double* sums) {
    for (std::ptrdiff_t r = 0; r < n_rows; ++r) {
        const std::ptrdiff_t i = rows[r] < 0 ? ~rows[r] : rows[r];
        const double weight = w ? w[i] : 1;
        add_row(X.data + i * X.d, X.shift, rows[r] < 0 ? -weight : weight, p0, p1, sums);
    }
}
