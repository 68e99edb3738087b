#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

// Stochastic gradient descent on ratings, in a grid of parts x parts cells: those on a diagonal have no
// user and no item in common and are done at the same time, one after the other inside each (the idea is
// that of Gemulla, Nijkamp, Haas and Sismanis, 2011). Nothing here depends on n_threads.
namespace fastml {

template <class T> struct Rating {
    std::int32_t user, item;  // places: rows of factors
    T value;
};

// How CSR rows (users, items) become cells. A place is where the factors of a user or item are; those
// of part p have places [first[p], first[p + 1]).
template <class T> struct Table {
    const std::ptrdiff_t* indptr;
    const std::int32_t* indices;
    const T* values;
    const std::int32_t* user_at;     // of each place, the row
    const std::int32_t* item_place;  // of each column
    const std::int32_t* item_part;   // ... and the part
    const std::ptrdiff_t* first;     // of users; parts + 1
    std::ptrdiff_t parts, group;
};

// out: all ratings, cell (a, b) of user part a and item part b being
// out[begin[a * parts + b]:begin[a * parts + b + 1]]. In a cell come first the ratings of users at places
// below `group`, then those below twice that, and so on, shuffled by the seed.
template <class T>
Status deal_ratings(const Table<T>& table, std::uint64_t seed, Rating<T>* out,
                    std::ptrdiff_t* begin, int n_threads) noexcept;

// What is known of a row besides its factors.
template <class T> struct Record {
    T bias;
    T penalty;       // of the factors, at each rating
    T squares;       // of the gradients so far, the mean over factors
    T bias_squares;  // ... those of the bias
};

// Factors are (n, ld), rows of f values and zeros up to ld, a multiple of step_unit.
template <class T> struct Factors {
    T* rows;
    Record<T>* records;
};

constexpr std::ptrdiff_t step_unit = 16;

struct Steps {
    double rate;
    double bias_penalty;  // over that of factors
    bool adaptive;        // rate / squares^(1/2) of each row
    bool biases;
};

template <class T> struct Cells {
    const Rating<T>* ratings;
    const std::ptrdiff_t* begin;
    std::ptrdiff_t parts;
};

// One step for each rating, by diagonals in the order given (parts values). *error = the sum of the
// squared errors, each as it was before its step.
template <class T>
Status descend_epoch(const Cells<T>& grid, const std::int32_t* diagonals, const Steps& steps,
                     const Factors<T>& users, const Factors<T>& items, std::ptrdiff_t f,
                     std::ptrdiff_t ld, double* error, int n_threads) noexcept;

}  // namespace fastml
