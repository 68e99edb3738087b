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

// Keeps the mirror image of a block, but for a square around the diagonal: it has its own in it.
template <class T, class C> void mirror_block(const Block<C>& block, T* out, std::ptrdiff_t ld) {
    const std::ptrdiff_t below = block.i0 + block.rows, right = block.j0 + block.cols;
    const std::ptrdiff_t begin = block.i0 > block.j0 ? block.i0 : block.j0;
    const std::ptrdiff_t end = below < right ? below : right;
    if (begin >= end) return transpose_block(block, out, ld);
    Block<C> above = block, beside = block;
    above.rows = begin - block.i0;
    beside.at += above.rows * block.ld + end - block.j0;
    beside.i0 = begin, beside.rows -= above.rows;
    beside.j0 = end, beside.cols = right - end;
    transpose_block(above, out, ld);
    transpose_block(beside, out, ld);
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

// Several rows at a time: each entry of K times `vecs` vectors of a row of V.
template <class T, class C, int rows, int vecs>
FML_INLINE void apply_rows(const C* K, std::ptrdiff_t ld, std::ptrdiff_t cols, const T* V,
                           std::ptrdiff_t r, double* out, std::ptrdiff_t out_ld) {
    using Vec = typename Simd<C>::Vec;
    constexpr int lanes = Simd<C>::lanes;
    Vec sum[rows][vecs];
    FML_UNROLL
    for (int i = 0; i < rows; ++i)
        for (int v = 0; v < vecs; ++v) sum[i][v] = broadcast<Vec>(C(0));
    for (std::ptrdiff_t j = 0; j < cols; ++j, V += r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            const Vec factors = load_as<C>(V + v * lanes);
            FML_UNROLL
            for (int i = 0; i < rows; ++i) sum[i][v] = sum[i][v] + factors * K[i * ld + j];
        }
    }
    C values[lanes];
    FML_UNROLL
    for (int i = 0; i < rows; ++i)
        for (int v = 0; v < vecs; ++v) {
            store(values, sum[i][v]);
            double* to = out + i * out_ld + v * lanes;
            for (int l = 0; l < lanes; ++l) to[l] += values[l];
        }
}

// ld: from a row of `out` to the next.
template <class T, class C, int rows>
FML_INLINE void apply_strip(const Block<C>& block, std::ptrdiff_t i, std::ptrdiff_t j,
                            std::ptrdiff_t cols, const T* V, std::ptrdiff_t r, double* out,
                            std::ptrdiff_t ld) {
    constexpr int lanes = Simd<C>::lanes;
    const C* K = block.at + i * block.ld + j;
    std::ptrdiff_t c = 0;
    for (; c + 2 * lanes <= r; c += 2 * lanes)
        apply_rows<T, C, rows, 2>(K, block.ld, cols, V + c, r, out + c, ld);
    for (; c + lanes <= r; c += lanes)
        apply_rows<T, C, rows, 1>(K, block.ld, cols, V + c, r, out + c, ld);
    for (; c < r; ++c) {
        for (int k = 0; k < rows; ++k) {
            C sum = 0;
            if (r == 1) {
#pragma omp simd reduction(+ : sum)
                for (std::ptrdiff_t t = 0; t < cols; ++t) sum += K[k * block.ld + t] * V[t];
            } else {
#pragma omp simd reduction(+ : sum)
                for (std::ptrdiff_t t = 0; t < cols; ++t) sum += K[k * block.ld + t] * V[t * r + c];
            }
            out[k * ld + c] += sum;
        }
    }
}

template <class T, class C> void apply_block(const Job<T>& job, const Block<C>& block) {
    const std::ptrdiff_t r = job.r, ld = job.segments * r;
    std::ptrdiff_t j = 0;
    for (std::ptrdiff_t s = 0; j < block.cols; ++s) {
        std::ptrdiff_t end = job.ends[s] - block.j0;
        if (end <= j) continue;
        if (end > block.cols) end = block.cols;
        const T* V = job.V + (block.j0 + j) * r;
        double* out = job.product + block.i0 * ld + s * r;
        std::ptrdiff_t i = 0;
        for (; i + 8 <= block.rows; i += 8)
            apply_strip<T, C, 8>(block, i, j, end - j, V, r, out + i * ld, ld);
        for (; i < block.rows; ++i)
            apply_strip<T, C, 1>(block, i, j, end - j, V, r, out + i * ld, ld);
        j = end;
    }
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
            apply_block(job, block);
            return;
    }
    if (job.mirrored) mirror_block(block, job.out, job.ld);
}
