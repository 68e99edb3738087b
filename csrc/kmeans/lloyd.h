#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"
#include "kmeans/labels.h"

// Lloyd's iterations, one after another on the same dense rows: what is known of the last one saves
// most of the next, once few rows change their label (Hamerly, 2010). Labels are those that
// assign() gives for the same centers.
namespace fastml {

// What one step leaves to the next. Arrays belong to the caller.
template <class T> struct Memory {
    Bounds bounds;           // n each
    std::int32_t* before;    // n: labels of the last step, -1 at first
    std::int32_t* work;      // n
    T* centers;              // (k, d): those of the last step
    double *sums, *weights;  // (k, d) and k: of the labels before
    KeptRows kept;
    bool wanted;     // few labels changed in the last step: bounds may pay
    bool bounded;    // bounds hold, for `centers`
    int wait;        // steps to go before bounds are tried again
    int patience;    // how long to wait the next time
    int age;         // steps since the sums were last added up in full
    double settled;  // of the rows whose label was in doubt, the share whose distance told it
};

// How far centers moved: what becomes of the bounds. For `near`, see reach_rows.
struct Drift {
    const float* moved;   // k
    const float* apart;   // k: at most the distance to the nearest other center
    const float* near;    // n, or null: at most the distance to the centers that moved most
    float rest;           // the farthest that any other center moved
    float slope, offset;  // a label stands if lower² - upper² exceeds slope * upper + offset
};

// Labels of all rows, *changed as in assign(), and, if they are not null, the sums and weights.
template <class T>
Status lloyd_step(const Rows<T>& X, const T* w, const T* centers, std::ptrdiff_t k,
                  Memory<T>& memory, std::int32_t* labels, std::ptrdiff_t* changed, double* sums,
                  double* weights, int n_threads) noexcept;

}  // namespace fastml
