// to[i] += w x[i], and from[i] -= w x[i] if there is one.
template <class T>
void move_row(const T* x, double w, std::ptrdiff_t n, double* from, double* to) {
    if (from) {
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            const double t = w * static_cast<double>(x[i]);
            to[i] += t;
            from[i] -= t;
        }
    } else {
        for (std::ptrdiff_t i = 0; i < n; ++i) to[i] += w * static_cast<double>(x[i]);
    }
}

// Columns [begin, end) of move_rows. Row after row goes to sums that stay in cache: the matrix comes
// from memory, once, and the time is that.
template <class T>
void move_rows_block(const T* K, std::ptrdiff_t n, const std::ptrdiff_t* rows,
                     const std::int32_t* from, const std::int32_t* to, const double* w,
                     std::ptrdiff_t m, std::ptrdiff_t begin, std::ptrdiff_t end, double* sums) {
    for (std::ptrdiff_t r = 0; r < m; ++r)
        move_row(K + rows[r] * n + begin, w[r], end - begin,
                 from ? sums + from[r] * n + begin : nullptr, sums + to[r] * n + begin);
}

inline std::ptrdiff_t nearest_block(const double* sums, std::ptrdiff_t n, std::ptrdiff_t k,
                                    const double* norm, const double* scale, std::ptrdiff_t begin,
                                    std::ptrdiff_t end, std::int32_t* labels, double* closeness) {
    constexpr std::ptrdiff_t strip = 256;
    std::ptrdiff_t changed = 0;
    for (std::ptrdiff_t first = begin; first < end; first += strip) {
        const std::ptrdiff_t rows = end - first < strip ? end - first : strip;
        double best[strip], whose[strip];  // a label is a double here, so that lanes are alike
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            best[i] = std::numeric_limits<double>::infinity();
            whose[i] = 0;
        }
        for (std::ptrdiff_t c = 0; c < k; ++c) {
            const double *sum = sums + c * n + first, twice = 2 * scale[c], start = norm[c];
            const double here = static_cast<double>(c);
            for (std::ptrdiff_t i = 0; i < rows; ++i) {
                const double value = start - twice * sum[i];
                whose[i] = value < best[i] ? here : whose[i];
                best[i] = value < best[i] ? value : best[i];
            }
        }
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            const auto label = static_cast<std::int32_t>(whose[i]);
            changed += labels[first + i] != label;
            labels[first + i] = label;
            closeness[first + i] = best[i];
        }
    }
    return changed;
}
