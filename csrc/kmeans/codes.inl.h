// Rows in 8-bit codes, in panels of tile_cols<float> rows, and their products with candidates'
// codes: in integers where a region says that it multiplies bytes, in single precision elsewhere.
#if defined(FML_BYTES)

// Four codes a word, because an instruction adds up four products; one operand is unsigned.
constexpr std::ptrdiff_t codes_a_word = 4;
constexpr int code_offset = 128;

FML_INLINE Simd<float>::Index code_product(const Simd<float>::Index& sum, const std::uint8_t* rows,
                                           std::int32_t candidate) {
    return (Simd<float>::Index)_mm512_dpbusd_epi32((__m512i)sum, _mm512_loadu_si512(rows),
                                                   _mm512_set1_epi32(candidate));
}

// Of tile_rows candidates and a panel of rows: products plus bias.
FML_INLINE void code_scores(const float* candidates, const float* bias, const std::uint8_t* rows,
                            std::ptrdiff_t words, Tile<float>& tile) {
    using Index = typename Simd<float>::Index;
    constexpr int lanes = Simd<float>::lanes;
    Index sum[tile_rows][tile_vecs];
    FML_UNROLL
    for (int a = 0; a < tile_rows; ++a) {
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v) sum[a][v] = Index{};
    }
    for (std::ptrdiff_t q = 0; q < words; ++q, rows += 4 * tile_cols<float>) {
        FML_UNROLL
        for (int a = 0; a < tile_rows; ++a) {
            std::int32_t word;
            std::memcpy(&word, candidates + q * tile_rows + a, sizeof word);
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                sum[a][v] = code_product(sum[a][v], rows + v * 4 * lanes, word);
        }
    }
    FML_UNROLL
    for (int a = 0; a < tile_rows; ++a) {
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v)
            tile.at[a][v] = (Simd<float>::Vec)_mm512_cvtepi32_ps((__m512i)sum[a][v]) + bias[a];
    }
}

FML_INLINE float candidate_word(const std::int8_t* codes) {
    float word;
    std::memcpy(&word, codes, sizeof word);
    return word;
}

#else

constexpr std::ptrdiff_t codes_a_word = 1;
constexpr int code_offset = 0;

FML_INLINE void code_scores(const float* candidates, const float* bias, const std::uint8_t* rows,
                            std::ptrdiff_t words, Tile<float>& tile) {
    FML_UNROLL
    for (int a = 0; a < tile_rows; ++a) {
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v)
            tile.at[a][v] = broadcast<typename Simd<float>::Vec>(bias[a]);
    }
    tile_multiply<Product>(candidates, reinterpret_cast<const std::int8_t*>(rows), words, tile);
}

FML_INLINE float candidate_word(const std::int8_t* codes) { return *codes; }

#endif

FML_INLINE constexpr std::ptrdiff_t code_words(std::ptrdiff_t d) {
    return (d + codes_a_word - 1) / codes_a_word;
}

// For a driver, which is outside every region: rows a panel holds, and bytes a row takes.
inline void code_shape(std::ptrdiff_t d, std::ptrdiff_t* width, std::ptrdiff_t* bytes) {
    *width = tile_cols<float>;
    *bytes = code_words(d) * codes_a_word;
}

// What rounding may add to or take off a score, where codes are at most 127.
FML_INLINE float code_slack(std::ptrdiff_t d) {
    return static_cast<float>(d) * (0.02f + 0.002f * static_cast<float>(d));
}

// Where the word with coordinate p of row i is; codes of a word lie side by side.
template <class Code>
FML_INLINE Code* code_word(Code* codes, std::ptrdiff_t i, std::ptrdiff_t p, std::ptrdiff_t d) {
    constexpr std::ptrdiff_t cols = tile_cols<float>;
    const std::ptrdiff_t word = (i / cols * code_words(d) + p / codes_a_word) * cols + i % cols;
    return codes + word * codes_a_word;
}

// Codes of row i: `n` of them from coordinate p on, a multiple of codes_a_word; or back.
inline void put_codes(std::uint8_t* codes, std::ptrdiff_t i, std::ptrdiff_t p, std::ptrdiff_t d,
                      const std::int8_t* from, std::ptrdiff_t n) {
    for (std::ptrdiff_t q = 0; q < n; q += codes_a_word) {
        std::uint8_t* word = code_word(codes, i, p + q, d);
        for (std::ptrdiff_t s = 0; s < codes_a_word; ++s)
            word[s] = static_cast<std::uint8_t>(q + s < n ? from[q + s] + code_offset : 0);
    }
}
inline std::int8_t get_code(const std::uint8_t* codes, std::ptrdiff_t i, std::ptrdiff_t p,
                            std::ptrdiff_t d) {
    const std::uint8_t code = code_word(codes, i, p, d)[p % codes_a_word];
    return static_cast<std::int8_t>(code - code_offset);
}

// The codes of some rows as A panels, with the biases that make products -|x̂ - ĉ|²/2 + |x̂|²/2; those
// of the padding never score.
inline void pack_candidates(const std::uint8_t* codes, std::ptrdiff_t d,
                            const std::ptrdiff_t* candidates, std::ptrdiff_t n, float* panels,
                            float* bias) {
    const std::ptrdiff_t words = code_words(d);
    for (std::ptrdiff_t c = 0; c < (n + tile_rows - 1) / tile_rows * tile_rows; ++c) {
        double norm = 0, sum = 0;
        for (std::ptrdiff_t q = 0; q < words; ++q) {
            std::int8_t word[codes_a_word] = {};
            for (std::ptrdiff_t s = 0; s < codes_a_word; ++s) {
                const std::ptrdiff_t p = q * codes_a_word + s;
                if (c < n && p < d) word[s] = get_code(codes, candidates[c], p, d);
                norm += word[s] * word[s];
                sum += word[s];
            }
            panels[(c / tile_rows * words + q) * tile_rows + c % tile_rows] = candidate_word(word);
        }
        bias[c] = c < n ? static_cast<float>(-0.5 * norm - code_offset * sum)
                        : -std::numeric_limits<float>::infinity();
    }
}
