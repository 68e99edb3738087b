#include "common/pool.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#include "common/runtime.h"

namespace fastml {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto spin_time = 50us;  // an idle worker watches for the next job this long, then sleeps
constexpr auto poll_time = 50ms;  // between two looks for Ctrl-C
constexpr int most_workers = 1023;

void relax() noexcept {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

// Spins on `ready` for spin_time; the clock is read once in 64 rounds.
template <class Ready> bool spin(Ready ready) noexcept {
    const auto until = Clock::now() + spin_time;
    do {
        for (int i = 0; i < 64; ++i) {
            if (ready()) return true;
            relax();
        }
    } while (Clock::now() < until);
    return ready();
}

// A thread's place at a job. Its tasks are one stretch of them, so that in job after job a thread
// comes back to the same rows, which its caches may still hold. It goes from the first on; who has
// none left takes others' from their last on.
struct alignas(64) Seat {
    std::atomic<std::ptrdiff_t> begun{0}, helped{0};  // of its tasks; by others, of these
    std::atomic<bool> open{false};  // its worker is asked to the job, and has not come yet
};

// One process's workers and the job they are on. Never destroyed: workers may outlive main(),
// and a forked child leaves its parent's behind.
struct Crew {
    std::mutex in_use;  // held by the thread whose job the workers are on
    std::atomic<int> callers{0};

    std::mutex mutex;
    std::condition_variable wake, finished;
    std::atomic<std::uint64_t> job{0};
    int n_workers = 0;

    // The job. Written by the caller before seats open, read by workers who took theirs.
    Pool::Task task = nullptr;
    void* context = nullptr;
    std::ptrdiff_t n_tasks = 0;
    int n_threads = 0;
    Seat seats[most_workers + 1];
    std::atomic<bool> cancelled{false};
    std::atomic<int> left{0};
};

std::atomic<Crew*> crew{nullptr};
std::atomic<int> thread_limit{0};  // 0: no limit set
InterruptCheck interrupt_check = nullptr;
thread_local Clock::time_point last_poll{};
thread_local bool inside_task = false;

bool interrupted() noexcept {
    if (!interrupt_check) return false;
    const auto now = Clock::now();
    if (now - last_poll < poll_time) return false;
    last_poll = now;
    return interrupt_check() != 0;
}

std::ptrdiff_t first_task(const Crew& c, int thread) noexcept {
    const std::ptrdiff_t each = c.n_tasks / c.n_threads, more = c.n_tasks % c.n_threads;
    return each * thread + (thread < more ? thread : more);
}

// Does tasks of one seat's until none is left there, or `worker` has to leave.
void take_tasks_of(Crew& c, int owner, int worker) noexcept {
    Seat& seat = c.seats[owner];
    const std::ptrdiff_t first = first_task(c, owner), n = first_task(c, owner + 1) - first;
    for (std::ptrdiff_t own = first;;) {
        // Every further Python thread that is inside run() costs this job one worker.
        if (worker > 0 && worker + c.callers.load(std::memory_order_relaxed) > c.n_threads) return;
        if (c.cancelled.load(std::memory_order_relaxed)) return;
        // Looked at before it is counted up: many threads may come for nothing.
        if (seat.begun.load(std::memory_order_relaxed) >= n) return;
        if (seat.begun.fetch_add(1, std::memory_order_relaxed) >= n) return;
        const std::ptrdiff_t i =
            owner == worker ? own++
                            : first + n - 1 - seat.helped.fetch_add(1, std::memory_order_relaxed);
        c.task(c.context, i, worker);
        if (worker == 0 && interrupted()) c.cancelled.store(true, std::memory_order_relaxed);
    }
}

// A thread does its own tasks, then those that the threads after it have not come to.
void take_tasks(Crew& c, int worker) noexcept {
    inside_task = true;
    for (int turn = 0; turn < c.n_threads; ++turn)
        take_tasks_of(c, (worker + turn) % c.n_threads, worker);
    inside_task = false;
}

// Workers are numbered from 1; a job of fewer threads is for the first ones.
void worker_loop(Crew* crew_of_worker, int worker) noexcept {
    Crew& c = *crew_of_worker;
    std::uint64_t seen = 0;
    for (;;) {
        auto posted = [&] { return c.job.load(std::memory_order_acquire) != seen; };
        if (!spin(posted)) {
            std::unique_lock<std::mutex> lock(c.mutex);
            c.wake.wait(lock, posted);
        }
        seen = c.job.load(std::memory_order_acquire);
        if (!c.seats[worker].open.exchange(false, std::memory_order_acq_rel)) continue;
        take_tasks(c, worker);
        {
            // Under the lock, so that the caller cannot miss it between its look and its wait.
            std::lock_guard<std::mutex> lock(c.mutex);
            c.left.fetch_add(1, std::memory_order_release);
        }
        c.finished.notify_one();
    }
}

Crew* crew_of_process() noexcept {
    Crew* c = crew.load(std::memory_order_acquire);
    if (c) return c;
    Crew* fresh = new (std::nothrow) Crew;
    if (!fresh) return nullptr;
    if (crew.compare_exchange_strong(c, fresh)) return fresh;
    delete fresh;
    return c;
}

// As many of `wanted` workers as the system grants.
int hire(Crew& c, int wanted) noexcept {
    if (wanted > most_workers) wanted = most_workers;
    while (c.n_workers < wanted) {
        try {
            std::thread(worker_loop, &c, c.n_workers + 1).detach();
        } catch (...) {
            break;
        }
        ++c.n_workers;
    }
    return c.n_workers < wanted ? c.n_workers : wanted;
}

Status run_alone(std::ptrdiff_t n_tasks, Pool::Task task, void* context) noexcept {
    const bool nested = inside_task;
    inside_task = true;
    Status status = Status::ok;
    for (std::ptrdiff_t i = 0; i < n_tasks && status == Status::ok; ++i) {
        task(context, i, 0);
        // A worker has no Python thread state to look for signals with: its caller looks.
        if (!nested && interrupted()) status = Status::interrupted;
    }
    inside_task = nested;
    return status;
}

Status run_together(Crew& c, std::ptrdiff_t n_tasks, int n_threads, Pool::Task task,
                    void* context) noexcept {
    c.n_threads = hire(c, n_threads - 1) + 1;
    c.task = task;
    c.context = context;
    c.n_tasks = n_tasks;
    c.cancelled.store(false, std::memory_order_relaxed);
    c.left.store(0, std::memory_order_relaxed);
    for (int i = 0; i < c.n_threads; ++i) {
        c.seats[i].begun.store(0, std::memory_order_relaxed);
        c.seats[i].helped.store(0, std::memory_order_relaxed);
    }
    for (int i = 1; i < c.n_threads; ++i) c.seats[i].open.store(true, std::memory_order_release);
    {
        std::lock_guard<std::mutex> lock(c.mutex);
        c.job.fetch_add(1, std::memory_order_release);
    }
    c.wake.notify_all();
    take_tasks(c, 0);

    int joined = 0;
    for (int i = 1; i < c.n_threads; ++i)
        if (!c.seats[i].open.exchange(false, std::memory_order_acq_rel)) ++joined;
    auto all_left = [&] { return c.left.load(std::memory_order_acquire) == joined; };
    if (!spin(all_left)) {
        std::unique_lock<std::mutex> lock(c.mutex);
        while (!c.finished.wait_for(lock, poll_time, all_left)) {
            if (crew.load(std::memory_order_acquire) != &c) return Status::interrupted;  // forked
            lock.unlock();
            if (interrupted()) c.cancelled.store(true, std::memory_order_relaxed);
            lock.lock();
        }
    }
    return c.cancelled.load(std::memory_order_relaxed) ? Status::interrupted : Status::ok;
}

class ThreadPool final : public Pool {
  public:
    Status run(std::ptrdiff_t n_tasks, int n_threads, Task task, void* context) noexcept override {
        if (n_threads > n_tasks) n_threads = static_cast<int>(n_tasks);
        if (inside_task || n_threads < 2) return run_counted(n_tasks, task, context);
        Crew* c = crew_of_process();
        if (!c) return Status::no_memory;
        c->callers.fetch_add(1, std::memory_order_relaxed);
        Status status;
        if (c->in_use.try_lock()) {
            status = run_together(*c, n_tasks, n_threads, task, context);
            c->in_use.unlock();
        } else {
            status = run_alone(n_tasks, task, context);
        }
        c->callers.fetch_sub(1, std::memory_order_relaxed);
        return status;
    }

  private:
    // One-thread jobs count as callers too, but never start a crew.
    static Status run_counted(std::ptrdiff_t n_tasks, Task task, void* context) noexcept {
        Crew* c = inside_task ? nullptr : crew.load(std::memory_order_acquire);
        if (c) c->callers.fetch_add(1, std::memory_order_relaxed);
        const Status status = run_alone(n_tasks, task, context);
        if (c) c->callers.fetch_sub(1, std::memory_order_relaxed);
        return status;
    }
};

#if !defined(_WIN32)
// No worker survives a fork: the child starts with no crew and hires its own when it needs one.
void forget_crew() noexcept {
    crew.store(nullptr, std::memory_order_release);
    inside_task = false;
}
#endif

}  // namespace

void* the_pool() noexcept {
    static ThreadPool pool;
    return static_cast<Pool*>(&pool);
}

void start_pool(InterruptCheck check) noexcept {
    interrupt_check = check;
#if !defined(_WIN32)
    pthread_atfork(nullptr, nullptr, forget_crew);
#endif
}

}  // namespace fastml

extern "C" {

int fastml_get_thread_limit() noexcept {
    return fastml::thread_limit.load(std::memory_order_relaxed);
}

void fastml_set_thread_limit(int limit) noexcept {
    fastml::thread_limit.store(limit > 0 ? limit : 0, std::memory_order_relaxed);
}

}  // extern "C"
