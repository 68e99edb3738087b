// What decided between a thread pool of our own and OpenMP; see docs/threads.md.
//
//   g++ -O2 -std=c++17 -fopenmp -Icsrc benchmarks/pool_or_openmp.cpp csrc/common/pool.cpp -pthread
//   ./a.out latency          microseconds from call to return of an empty two-thread job
//   ./a.out fork pool|omp    a job, a fork, a job in the child
//   ./a.out starve pool|omp  a job when no thread can be started (address space used up)
//   with -fsanitize=thread:  ./a.out race pool|omp   a correct reduction, many times over
#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "common/runtime.h"

using Clock = std::chrono::steady_clock;

static void job(bool pool, std::vector<long>& out) {
    const long n = static_cast<long>(out.size());
    if (pool) {
        fastml::parallel(n, 2, [&](std::ptrdiff_t i, int) { out[i] += i; });
    } else {
#pragma omp parallel for num_threads(2) schedule(dynamic)
        for (long i = 0; i < n; ++i) out[i] += i;
    }
}

static double latency(bool pool, int gap) {
    std::vector<long> out(2);
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
        double total = 0;
        const int jobs = gap > 100 ? 300 : 3000;
        for (int j = 0; j < jobs; ++j) {
            const auto until = Clock::now() + std::chrono::microseconds(gap);
            while (Clock::now() < until) continue;
            const auto start = Clock::now();
            job(pool, out);
            total += std::chrono::duration<double, std::micro>(Clock::now() - start).count();
        }
        best = total / jobs < best ? total / jobs : best;
    }
    return best;
}

int main(int argc, char** argv) {
    fastml::start_pool(nullptr);
    fastml::bind_pool(fastml::the_pool());
    const char* what = argc > 1 ? argv[1] : "latency";
    const bool pool = argc > 2 && !std::strcmp(argv[2], "pool");
    std::vector<long> out(1000);
    if (!std::strcmp(what, "latency")) {
        std::printf("gap between jobs   pool     libgomp  (microseconds)\n");
        for (int gap : {0, 10, 100, 1000}) {
            const double ours = latency(true, gap), theirs = latency(false, gap);
            std::printf("%10d us   %8.2f %8.2f\n", gap, ours, theirs);
        }
    } else if (!std::strcmp(what, "fork")) {
        job(pool, out);
        const pid_t child = fork();
        if (child == 0) {
            alarm(5);
            job(pool, out);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        std::printf("child %s\n", WIFSIGNALED(status) ? "hung (killed after 5 s)" : "finished");
    } else if (!std::strcmp(what, "starve")) {
        const rlimit none{64 << 20, 64 << 20};
        setrlimit(RLIMIT_AS, &none);
        job(pool, out);
        std::printf("finished, sum of one job %s\n", out[999] == 999 ? "right" : "wrong");
    } else {
        for (int j = 0; j < 2000; ++j) job(pool, out);
        std::printf("finished\n");
    }
}
