#pragma once
// Rows that are equal; see merging.cpp. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

template <class T>
using Method = Solver* (*)(const Rows<T>&, const Problem&, const Limits&) noexcept;

// `method` on the rows that differ, each with the costs of all that are equal to it.
template <class T>
Solver* merging(const Rows<T>&, const Problem&, const Limits&, Method<T> method) noexcept;
// Whether that may pay, by a sample of the rows.
template <class T> bool may_repeat(const Rows<T>&, const Problem&);

}  // namespace fastml
