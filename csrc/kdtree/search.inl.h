// 16 numbers, one for each child of a node or point of a leaf.
constexpr int fan = 16;
template <class T> struct Sixteen {
    typename Simd<T>::Vec part[fan / Simd<T>::lanes];

    FML_INLINE void clear() { std::memset(this, 0, sizeof *this); }
    FML_INLINE T at(int l) const {
        T x;
        std::memcpy(&x, reinterpret_cast<const char*>(this) + l * sizeof(T), sizeof x);
        return x;
    }
    // Bit l tells that number l is above x, or below it.
    FML_INLINE unsigned above(T x) const {
        const auto v = broadcast<typename Simd<T>::Vec>(x);
        unsigned bits = 0;
        FML_UNROLL
        for (int i = 0; i < fan / Simd<T>::lanes; ++i)
            bits |= below<T>(v, part[i]) << i * Simd<T>::lanes;
        return bits;
    }
    FML_INLINE unsigned under(T x) const {
        const auto v = broadcast<typename Simd<T>::Vec>(x);
        unsigned bits = 0;
        FML_UNROLL
        for (int i = 0; i < fan / Simd<T>::lanes; ++i)
            bits |= below<T>(part[i], v) << i * Simd<T>::lanes;
        return bits;
    }
};

// Which of the numbers marked in `bits` is the least; the first on ties. bits is not 0.
template <class T> FML_INLINE int least(const Sixteen<T>& numbers, unsigned bits) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4) {
        const __m512 v = (__m512)numbers.part[0];
        const float low = _mm512_mask_reduce_min_ps(bits, v);
        return lowest_bit(bits & _mm512_cmp_ps_mask(v, _mm512_set1_ps(low), _CMP_EQ_OQ));
    } else {
        const __m512d v = (__m512d)numbers.part[0], w = (__m512d)numbers.part[1];
        const __m512d far = _mm512_set1_pd(std::numeric_limits<double>::infinity());
        const double low = _mm512_reduce_min_pd(_mm512_min_pd(
            _mm512_mask_mov_pd(far, bits & 255, v), _mm512_mask_mov_pd(far, bits >> 8, w)));
        const __m512d at = _mm512_set1_pd(low);
        return lowest_bit(bits & (_mm512_cmp_pd_mask(v, at, _CMP_EQ_OQ) |
                                  _mm512_cmp_pd_mask(w, at, _CMP_EQ_OQ) << 8));
    }
#else
    int best = lowest_bit(bits);
    T low = numbers.at(best);
    while (bits &= bits - 1) {
        const int l = lowest_bit(bits);
        const T x = numbers.at(l);
        best = x < low ? l : best;
        low = x < low ? x : low;
    }
    return best;
#endif
}

#include "kdtree/metrics.inl.h"

// The dimension as a constant, or 0 and told at run time.
template <int D> struct Dimension {
    explicit Dimension(std::ptrdiff_t) {}
    FML_INLINE constexpr operator std::ptrdiff_t() const { return D; }
};
template <> struct Dimension<0> {
    std::ptrdiff_t d;
    explicit Dimension(std::ptrdiff_t n_columns) : d(n_columns) {}
    FML_INLINE operator std::ptrdiff_t() const { return d; }
};

template <class T, template <class> class M, int D> struct Search {
    using Vec = typename Simd<T>::Vec;
    using Int = typename KDTree<T>::Int;
    static constexpr int lanes = Simd<T>::lanes, parts = fan / lanes;

    const KDTree<T>& tree;
    M<T> metric;
    Dimension<D> d;

    explicit Search(const KDTree<T>& of) : tree(of), metric(of.p), d(of.d) {}

    // From q to the 16 points of a leaf.
    FML_INLINE void distances(const T* q, std::ptrdiff_t leaf, Sixteen<T>& out) const {
        const T* points = tree.points + leaf * d * fan;
        out.clear();
        for (std::ptrdiff_t j = 0; j < d; ++j, points += fan) {
            FML_UNROLL
            for (int i = 0; i < parts; ++i)
                metric.add(out.part[i], load<Vec>(points + i * lanes) - q[j]);
        }
    }
    // From the box between lo and hi to those of the 16 children of a node; a box may be a point.
    FML_INLINE void gaps(const T* lo, const T* hi, int level, std::ptrdiff_t node,
                         Sixteen<T>& out) const {
        const T* box = tree.boxes + (tree.first_node[level] + node) * d * 2 * fan;
        out.clear();
        for (std::ptrdiff_t j = 0; j < d; ++j, box += 2 * fan) {
            FML_UNROLL
            for (int i = 0; i < parts; ++i) {
                const Vec above = load<Vec>(box + i * lanes) - hi[j];
                const Vec below = load<Vec>(box + fan + i * lanes) + lo[j];
                metric.add(out.part[i], maximum<T>(maximum<T>(above, below), Vec{}));
            }
        }
        if constexpr (M<T>::bound != 1)
            for (int i = 0; i < parts; ++i) out.part[i] = out.part[i] * M<T>::bound;
    }
    FML_INLINE unsigned children(int level, std::ptrdiff_t node) const {
        const std::ptrdiff_t width =
            level ? tree.first_node[level] - tree.first_node[level - 1] : tree.leaves;
        return width - node * fan >= fan ? 0xffff : (1u << (width - node * fan)) - 1;
    }
    FML_INLINE Int lowest(int level, std::ptrdiff_t child) const {
        return tree.lowest[tree.first_node[level] * fan + child];
    }

    // Shows `sink` a leaf at least `bound` away, if it may want it.
    template <class Sink>
    FML_INLINE void leaf(const T* q, T bound, std::ptrdiff_t leaf, Sink& sink) const {
        if (!sink.admits(bound, tree.lowest[leaf])) return;
        Sixteen<T> found;
        distances(q, leaf, found);
        sink.leaf(found, tree.index + leaf * fan);
    }
    // The leaves of a node of level 0, but not the leaf `seen`: the nearest one first, and then as
    // they come. To look for the next nearest each time takes longer than what it saves.
    template <class Sink>
    FML_INLINE void leaves(const T* q, std::ptrdiff_t node, std::ptrdiff_t seen, Sink& sink) const {
        Sixteen<T> bound;
        gaps(q, q, 0, node, bound);
        unsigned open = children(0, node);
        if (seen / fan == node && seen >= 0) open &= ~(1u << seen % fan);
        open &= ~bound.above(sink.limit());
        if (open & (open - 1)) {
            const int lane = least(bound, open);
            leaf(q, bound.at(lane), node * fan + lane, sink);
            open &= ~(bound.above(sink.limit()) | 1u << lane);
        }
        for (; open; open &= open - 1) {
            const int lane = lowest_bit(open);
            leaf(q, bound.at(lane), node * fan + lane, sink);
        }
    }

    struct Frame {
        Sixteen<T> bound;
        std::ptrdiff_t node;
        unsigned open;  // children still to be visited
    };
    FML_INLINE void enter(Frame& frame, const T* lo, const T* hi, int level,
                          std::ptrdiff_t node) const {
        gaps(lo, hi, level, node, frame.bound);
        frame.node = node;
        frame.open = children(level, node);
    }

    // Shows `sink` all leaves that it may want, nearest boxes first, but not the leaf `seen`.
    template <class Sink> void run(const T* q, std::ptrdiff_t seen, Sink& sink) const {
        Frame frames[KDTree<T>::most_levels];
        const int top = tree.levels - 1;
        if (top == 0) return leaves(q, 0, seen, sink);
        int level = top;
        enter(frames[top], q, q, top, 0);
        while (level <= top) {
            Frame& frame = frames[level];
            frame.open &= ~frame.bound.above(sink.limit());
            if (!frame.open) {
                ++level;
                continue;
            }
            const int lane = least(frame.bound, frame.open);
            const std::ptrdiff_t child = frame.node * fan + lane;
            frame.open &= ~(1u << lane);
            if (!sink.admits(frame.bound.at(lane), lowest(level, child))) continue;
            if (--level) {
                enter(frames[level], q, q, level, child);
            } else {
                leaves(q, child, seen, sink);
                level = 1;
            }
        }
    }

    // The leaf that q is in, or close to.
    std::ptrdiff_t home(const T* q) const {
        Sixteen<T> bound;
        std::ptrdiff_t node = 0;
        for (int level = tree.levels - 1; level >= 0; --level) {
            gaps(q, q, level, node, bound);
            node = node * fan + least(bound, children(level, node));
        }
        return node;
    }

    // The nodes of level 0 that have points within `reach` of the box between lo and hi, if they
    // are not more than `most`; else -1.
    std::ptrdiff_t nodes_near(const T* lo, const T* hi, T reach, std::ptrdiff_t most,
                              std::ptrdiff_t* nodes) const {
        Frame frames[KDTree<T>::most_levels];
        const int top = tree.levels - 1;
        nodes[0] = 0;
        if (top == 0) return 1;
        std::ptrdiff_t found = 0;
        int level = top;
        enter(frames[top], lo, hi, top, 0);
        frames[top].open &= ~frames[top].bound.above(reach);
        while (level <= top) {
            Frame& frame = frames[level];
            if (!frame.open) {
                ++level;
                continue;
            }
            const std::ptrdiff_t child = frame.node * fan + lowest_bit(frame.open);
            frame.open &= frame.open - 1;
            if (level > 1) {
                --level;
                enter(frames[level], lo, hi, level, child);
                frames[level].open &= ~frames[level].bound.above(reach);
            } else {
                if (found == most) return -1;
                nodes[found++] = child;
            }
        }
        return found;
    }

    // The leaf of a node of level 0 that q is in, or close to.
    FML_INLINE std::ptrdiff_t closest(const T* q, std::ptrdiff_t node) const {
        Sixteen<T> bound;
        gaps(q, q, 0, node, bound);
        return node * fan + least(bound, children(0, node));
    }

    // Lets each of m <= 16 sinks see all it wants, for the queries q (m, d), which are close to
    // each other: in `leaf`, or near it. box: scratch of 2 d values.
    template <class Sink>
    void group(const T* q, int m, std::ptrdiff_t leaf, bool inside, T* box, Sink* sinks) const {
        constexpr std::ptrdiff_t most = 24;
        std::ptrdiff_t nodes[most], seen[fan], found = -1;
        T reach = 0, *lo = box, *hi = box + d;
        for (std::ptrdiff_t j = 0; j < d; ++j) lo[j] = hi[j] = q[j];
        for (int i = 0; i < m; ++i) {
            Sixteen<T> at;
            seen[i] = inside ? leaf : closest(q + i * d, leaf / fan);
            distances(q + i * d, seen[i], at);
            sinks[i].first(at, tree.index + seen[i] * fan);
            reach = sinks[i].limit() > reach ? sinks[i].limit() : reach;
            for (std::ptrdiff_t j = 0; j < d; ++j) {
                const T x = q[i * d + j];
                lo[j] = x < lo[j] ? x : lo[j];
                hi[j] = x > hi[j] ? x : hi[j];
            }
        }
        if (reach < std::numeric_limits<T>::infinity())
            found = nodes_near(lo, hi, reach, most, nodes);
        for (int i = 0; i < m; ++i) {
            if (found < 0) run(q + i * d, seen[i], sinks[i]);
            for (std::ptrdiff_t f = 0; f < found; ++f)
                leaves(q + i * d, nodes[f], seen[i], sinks[i]);
        }
    }
};
