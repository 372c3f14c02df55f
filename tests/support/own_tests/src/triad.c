/* Copy and Triad over arrays of 16 MiB each, best of five; prints MB/s, and whether a sum is right. */
#include <stdio.h>
#include <time.h>

#define N (1 << 21)

static double a[N], b[N], c[N];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(void)
{
    double copy = 1e30, triad = 1e30, start, took;
    for (int i = 0; i < N; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
    }
    for (int run = 0; run < 5; run++) {
        start = now();
        for (int i = 0; i < N; i++)
            c[i] = b[i];
        took = now() - start;
        copy = took < copy ? took : copy;
        start = now();
        for (int i = 0; i < N; i++)
            a[i] = b[i] + 3.0 * c[i];
        took = now() - start;
        triad = took < triad ? took : triad;
    }
    printf("Copy: %.1f\nTriad: %.1f\n", 16e-6 * N / copy, 24e-6 * N / triad);
    printf(a[N / 2] == 8.0 ? "Solution Validates\n" : "wrong\n");
    return 0;
}
