// Where finished blocks go. C is what was computed in, T what is kept.

template <class T, class C> void store_block(const Block<C>& block, T* out, std::ptrdiff_t ld) {
    for (std::ptrdiff_t i = 0; i < block.rows; ++i) {
        const C* row = block.at + i * block.ld;
        T* to = out + (block.i0 + i) * ld + block.j0;
        for (std::ptrdiff_t j = 0; j < block.cols; ++j) to[j] = static_cast<T>(row[j]);
    }
}

// out[j, i] = block[i, j]: squares go through registers, so that whole vectors are written.
template <class T, class C> void transpose_block(const Block<C>& block, T* out, std::ptrdiff_t ld) {
    constexpr int lanes = Simd<C>::lanes;
    std::ptrdiff_t squares = 0;  // columns done
    if constexpr (std::is_same_v<T, C>) {
        using Vec = typename Simd<C>::Vec;
        const std::ptrdiff_t whole = block.rows / lanes * lanes;
        for (; squares + lanes <= block.cols; squares += lanes)
            for (std::ptrdiff_t i = 0; i < whole; i += lanes) {
                Vec square[lanes];
                FML_UNROLL
                for (int k = 0; k < lanes; ++k)
                    square[k] = load<Vec>(block.at + (i + k) * block.ld + squares);
                transpose<C>(square);
                T* to = out + (block.j0 + squares) * ld + block.i0 + i;
                FML_UNROLL
                for (int k = 0; k < lanes; ++k) store(to + k * ld, square[k]);
            }
        for (std::ptrdiff_t j = 0; j < squares; ++j)
            for (std::ptrdiff_t i = whole; i < block.rows; ++i)
                out[(block.j0 + j) * ld + block.i0 + i] = block.at[i * block.ld + j];
    }
    for (std::ptrdiff_t j = squares; j < block.cols; ++j)
        for (std::ptrdiff_t i = 0; i < block.rows; ++i)
            out[(block.j0 + j) * ld + block.i0 + i] = static_cast<T>(block.at[i * block.ld + j]);
}

// Columns arrive in ascending order, and one must be below what is there: ties go to the first.
template <class C>
void nearest_block(const Block<C>& block, double* distance, std::int64_t* index) {
    using Vec = typename Simd<C>::Vec;
    for (std::ptrdiff_t i = 0; i < block.rows; ++i) {
        const C* row = block.at + i * block.ld;
        C best = static_cast<C>(distance[block.i0 + i]);
        for (std::ptrdiff_t j = 0; j < block.cols; j += Simd<C>::lanes) {
            unsigned nearer = below<C>(load<Vec>(row + j), broadcast<Vec>(best));
            for (; nearer; nearer &= nearer - 1) {
                const std::ptrdiff_t k = j + lowest_bit(nearer);
                if (k >= block.cols || !(row[k] < best)) continue;
                best = row[k];
                index[block.i0 + i] = block.j0 + k;
            }
        }
        distance[block.i0 + i] = best;
    }
}

// Several rows at a time: each entry of K times a piece of a row of V.
template <class T, class C, int rows, int width>
FML_INLINE void apply_rows(const C* K, std::ptrdiff_t ld, std::ptrdiff_t cols, const T* V,
                           std::ptrdiff_t r, double* out) {
    C sum[rows][width] = {};
    for (std::ptrdiff_t j = 0; j < cols; ++j)
        for (int i = 0; i < rows; ++i)
            for (int c = 0; c < width; ++c) sum[i][c] += K[i * ld + j] * V[j * r + c];
    for (int i = 0; i < rows; ++i)
        for (int c = 0; c < width; ++c) out[i * r + c] += sum[i][c];
}

template <class T, class C, int rows>
FML_INLINE void apply_strip(const C* K, std::ptrdiff_t ld, std::ptrdiff_t cols, const T* V,
                            std::ptrdiff_t r, double* out) {
    constexpr int wide = 2 * Simd<C>::lanes;
    std::ptrdiff_t c = 0;
    for (; c + wide <= r; c += wide) apply_rows<T, C, rows, wide>(K, ld, cols, V + c, r, out + c);
    for (; c < r; ++c) {
        for (int i = 0; i < rows; ++i) {
            C sum = 0;
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t j = 0; j < cols; ++j) sum += K[i * ld + j] * V[j * r + c];
            out[i * r + c] += sum;
        }
    }
}

template <class T, class C>
void apply_block(const Block<C>& block, const T* V, std::ptrdiff_t r, double* out) {
    const T* here = V + block.j0 * r;
    std::ptrdiff_t i = 0;
    for (; i + 4 <= block.rows; i += 4)
        apply_strip<T, C, 4>(block.at + i * block.ld, block.ld, block.cols, here, r,
                             out + (block.i0 + i) * r);
    for (; i < block.rows; ++i)
        apply_strip<T, C, 1>(block.at + i * block.ld, block.ld, block.cols, here, r,
                             out + (block.i0 + i) * r);
}

template <class T, class C> void deliver(const Job<T>& job, const Block<C>& block) {
    switch (job.sink) {
        case Sink::store:
            store_block(block, job.out, job.ld);
            break;
        case Sink::transpose:
            transpose_block(block, job.out, job.ld);
            return;
        case Sink::nearest:
            nearest_block(block, job.distance, job.index);
            return;
        case Sink::apply:
            apply_block(block, job.V, job.r, job.product);
            return;
    }
    if (!job.symmetric) return;
    // What is around the diagonal has its mirror image in itself.
    const std::ptrdiff_t done = block.i0 + block.rows - block.j0;
    Block<C> beyond = block;
    if (done > 0) {
        beyond.at += done;
        beyond.j0 += done;
        beyond.cols -= done;
    }
    if (beyond.cols > 0) transpose_block(beyond, job.out, job.ld);
}
