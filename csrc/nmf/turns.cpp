// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "nmf/plan.h"

#define FML_KERNEL "nmf/turns.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

namespace {

template <class T> constexpr ptrdiff_t line = 64 / sizeof(T);

// Boundary b of `parts` of n places: whole lines, so that no vector is in two.
template <class T> ptrdiff_t cut(ptrdiff_t n, ptrdiff_t b, ptrdiff_t parts) {
    return b == parts ? n : part_begin(ceil_div(n, line<T>), b, parts) * line<T>;
}

// How dense X (n, d) is gone through: one factor takes its turn with X, cut into parts along it, and sums
// for each what the products of the other, which answers, are the sum of.
template <class T> struct Course {
    bool columns;               // H goes through columns of X, and W answers; else W through rows
    ptrdiff_t parts, step;      // so many places of a part at a time stay in L2
    ptrdiff_t answers, widest;  // tasks of the other, and places in the largest

    Course(ptrdiff_t n, ptrdiff_t d, ptrdiff_t k) {
        constexpr ptrdiff_t tallest = 2048, most_answers = 16, answer = 48;
        columns = n < d && n <= tallest;
        const ptrdiff_t own = columns ? d : n, other = columns ? n : d;
        parts = wide_parts(own, ceil_div(k, line<T>) * line<T>);
        const ptrdiff_t cache = columns ? 1 << 19 : 1 << 20;
        const ptrdiff_t fit = cache / static_cast<ptrdiff_t>(sizeof(T)) / other / line<T> * line<T>;
        step = columns ? std::clamp(fit, 8 * line<T>, 64 * line<T>)
                       : std::clamp(fit, 2 * line<T>, 16 * line<T>);
        answers = std::clamp(other / answer, ptrdiff_t(1), most_answers);
        widest = (ceil_div(ceil_div(other, line<T>), answers) + 1) * line<T>;
    }
};

// gram = the sum of those of parts, whole, and l2 on its diagonal.
template <class T>
void finish_gram(const T* parts, ptrdiff_t n_parts, ptrdiff_t k, ptrdiff_t ldg, T l2, T* gram) {
    add_parts(parts, n_parts, ldg * ldg, gram);
    for (ptrdiff_t s = 0; s < k; ++s) {
        for (ptrdiff_t t = 0; t < s; ++t) gram[t * ldg + s] = gram[s * ldg + t];
        gram[s * ldg + s] += l2;
    }
}

// One call of `alternate`, with its scratch.
template <class T> struct Alternation {
    const T* X;
    const Turns<T>& turns;
    const Course<T> course;
    const int n_threads;
    const ptrdiff_t part, ldp, tile, square;  // sizes: of sums, of products (k, ldp), of a gram
    Scratch<T> scratch, grams;
    Scratch<double> violations;

    Alternation(const T* matrix, const Turns<T>& how, int threads)
        : X(matrix), turns(how), course(how.size[0], how.size[1], how.k),
          n_threads(threads_awake(1.0 * how.size[0] * how.size[1] * how.k, threads)),
          part(how.k * how.ld[!course.columns]),
          ldp(row_length<T>(std::max(course.step, course.widest))), tile(aligned(how.k * ldp)),
          square(how.ldg * how.ldg), scratch(n_threads * tile),
          grams(std::max(course.parts, course.answers) * square),
          violations(std::max(course.parts, course.answers)) {}

    explicit operator bool() const { return scratch && grams && violations; }

    Turn<T> turn_of(int f, int sweeps) const {
        const Sweep<T> sweep{turns.gram[!f], turns.order[f], turns.l1[f], sweeps};
        return {X,
                turns.size[0],
                turns.size[1],
                turns.k,
                turns.ldg,
                course.columns,
                course.step,
                ldp,
                Flat<T>{turns.at[f], turns.ld[f]},
                Flat<T>{turns.at[!f], turns.ld[!f]},
                sweep};
    }

    // Of the factor that goes through X. Without sweeps it only makes what the other needs.
    Status turn(int sweeps, double* violation) {
        const int f = course.columns;
        const Turn<T> job = turn_of(f, sweeps);
        const auto run = FML_PICK(turn_block<T>);
        const Status status = parallel(course.parts, n_threads, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t begin = cut<T>(turns.size[f], b, course.parts);
            T *sums = turns.sums + b * part, *gram = grams.get() + b * square;
            std::memset(sums, 0, part * sizeof(T));
            std::memset(gram, 0, square * sizeof(T));
            violations[b] = 0;
            run(job, begin, cut<T>(turns.size[f], b + 1, course.parts),
                scratch.get() + worker * tile, sums, gram, &violations[b]);
        });
        return finish(status, course.parts, f, violation);
    }

    // Of the one whose products are the sum of the parts.
    Status answer(double* violation) {
        const int f = !course.columns;
        const ptrdiff_t n = turns.size[f], k = turns.k;
        const Turn<T> job = turn_of(f, turns.sweeps[f]);
        const auto run = FML_PICK(answer_block<T>);
        const int awake = threads_awake(2.0 * n * k * (turns.ldg + course.parts), n_threads);
        const Status status = parallel(course.answers, awake, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t begin = cut<T>(n, b, course.answers),
                            end = cut<T>(n, b + 1, course.answers);
            T* gram = grams.get() + b * square;
            std::memset(gram, 0, square * sizeof(T));
            run(job, turns.sums, course.parts, part, begin, end - begin,
                scratch.get() + worker * tile, gram, &violations[b]);
        });
        return finish(status, course.answers, f, violation);
    }

    Status finish(Status status, ptrdiff_t parts, int f, double* violation) {
        if (status != Status::ok) return status;
        for (ptrdiff_t b = 0; b < parts; ++b) *violation += violations[b];
        finish_gram(grams.get(), parts, turns.k, turns.ldg, turns.l2[!f], turns.gram[f]);
        return status;
    }
};

}  // namespace

template <class T> ptrdiff_t sums_size(ptrdiff_t n, ptrdiff_t d, ptrdiff_t k) noexcept {
    const Course<T> course(n, d, k);
    return course.parts * k * row_length<T>(course.columns ? n : d);
}

template <class T>
Status alternate(const T* X, const Turns<T>& turns, int count, double tol, double* first,
                 double* violation, int* done, int n_threads) noexcept {
    Alternation<T> all(X, turns, n_threads);
    if (!all) return Status::no_memory;
    const bool columns = all.course.columns;
    Status status = Status::ok;
    if (columns && *first < 0) status = all.turn(0, violation);
    for (*done = 0; *done < count && status == Status::ok;) {
        *violation = 0;
        status = columns ? all.answer(violation) : all.turn(turns.sweeps[0], violation);
        if (status != Status::ok) break;
        status = columns ? all.turn(turns.sweeps[1], violation) : all.answer(violation);
        ++*done;
        if (*first < 0) *first = *violation;
        if (*first == 0 || *violation / *first <= tol) break;
    }
    return status;
}

#define FML_INSTANTIATE(T)                                                                    \
    template ptrdiff_t sums_size<T>(ptrdiff_t, ptrdiff_t, ptrdiff_t) noexcept;                \
    template Status alternate(const T*, const Turns<T>&, int, double, double*, double*, int*, \
                              int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
