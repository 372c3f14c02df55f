/* A rank that enters and leaves two fences of PMIx: with data, and without.
   Prints for each: fence N RANK ENTERED LEFT, in seconds since 1970. */
#include <pmix.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(void) {
    pmix_proc_t me, all;
    if (PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
        return 1;
    PMIX_PROC_LOAD(&all, me.nspace, PMIX_RANK_WILDCARD);
    for (int number = 0; number < 2; number++) {
        bool with_data = number == 0;
        pmix_info_t info;
        PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &with_data, PMIX_BOOL);
        if (me.rank == 0) { /* the last one in */
            struct timespec pause = {0, 200000000};
            nanosleep(&pause, NULL);
        }
        double entered = now();
        if (PMIx_Fence(&all, 1, &info, 1) != PMIX_SUCCESS)
            return 2;
        printf("fence %d %u %.6f %.6f\n", number, me.rank, entered, now());
    }
    fflush(stdout);
    PMIx_Finalize(NULL, 0);
    return 0;
}
