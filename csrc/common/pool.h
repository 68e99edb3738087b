#pragma once
#include <cstddef>
#include <type_traits>

namespace fastml {

// What a kernel driver returns. `interrupted`: a Python exception (Ctrl-C, usually) is pending.
enum class Status : int { ok = 0, no_memory = 1, interrupted = 2 };

// The one facility that owns threads. It lives in fastml._native.runtime; every other compiled
// module is handed a pointer to it when it is imported (bind_pool), so there is one pool a process.
class Pool {
  public:
    using Task = void (*)(void* context, std::ptrdiff_t index, int worker);

    // Calls task(context, i, worker) once for every i in [0, n_tasks), on at most n_threads threads
    // counting the caller; worker is in [0, n_threads) and no two threads share one at a time.
    // Which thread runs which i is not defined: results must depend on i alone. As far as it can,
    // each has one stretch of them, and the same in a job of as many tasks: tasks that follow one
    // another should touch what lies together.
    // Tasks must not throw. Called from inside a task, or while another thread holds the pool, it
    // runs everything on the calling thread. Several times a second the caller looks for Ctrl-C;
    // then tasks not yet started are dropped and `interrupted` comes back.
    virtual Status run(std::ptrdiff_t n_tasks, int n_threads, Task task,
                       void* context) noexcept = 0;

  protected:
    ~Pool() = default;
};

inline Pool* pool_of_module = nullptr;
inline void bind_pool(void* pool) noexcept { pool_of_module = static_cast<Pool*>(pool); }

// parallel(n_tasks, n_threads, [&](index, worker) {...})
template <class Body>
Status parallel(std::ptrdiff_t n_tasks, int n_threads, Body&& body) noexcept {
    return pool_of_module->run(
        n_tasks, n_threads,
        [](void* context, std::ptrdiff_t index, int worker) {
            (*static_cast<std::remove_reference_t<Body>*>(context))(index, worker);
        },
        &body);
}

}  // namespace fastml
