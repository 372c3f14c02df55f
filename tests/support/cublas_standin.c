/* The part of CUDA's runtime and of cuBLAS that gpu_gemm.py calls, on the processor: no machine here has a
 * GPU. STANDIN_WRONG: the precision (cublasComputeType_t) in which GPU 1 gives one wrong number.
 * Without tensor cores for whole numbers: CUBLAS_COMPUTE_32I is not supported. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static __thread int device;

int cudaGetDeviceCount(int *count) { *count = 2; return 0; }
int cudaSetDevice(int which) { device = which; return 0; }
int cudaMalloc(void **at, size_t size) { *at = malloc(size); return *at ? 0 : 2; }
int cudaFree(void *at) { free(at); return 0; }
int cudaMemcpy(void *to, const void *from, size_t size, int kind) { memcpy(to, from, size); return 0; }
int cudaMemset(void *at, int value, size_t size) { memset(at, value, size); return 0; }
int cudaEventCreate(void **event) { *event = malloc(sizeof(struct timespec)); return 0; }
int cudaEventRecord(void *event, void *stream) { return clock_gettime(CLOCK_MONOTONIC, event); }
int cudaEventSynchronize(void *event) { return 0; }
const char *cudaGetErrorString(int code) { return "out of memory"; }
int cudaEventElapsedTime(float *ms, struct timespec *a, struct timespec *b) {
    *ms = (b->tv_sec - a->tv_sec) * 1e3 + (b->tv_nsec - a->tv_nsec) / 1e6;
    return 0;
}
int cublasCreate_v2(void **handle) { *handle = 0; return 0; }

static double at(const void *matrix, int kind, size_t i) { /* cudaDataType */
    union { uint32_t bits; float number; } half;
    switch (kind) {
    case 0: return ((const float *)matrix)[i];
    case 1: return ((const double *)matrix)[i];
    case 2: return ((const _Float16 *)matrix)[i];
    default: half.bits = (uint32_t)((const uint16_t *)matrix)[i] << 16; return half.number;
    }
}

int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int akind,
                 int lda, const void *b, int bkind, int ldb, const void *beta, void *c, int ckind, int ldc,
                 int compute, int algorithm) {
    const char *wrong = getenv("STANDIN_WRONG");
    if (compute == 72) return 15;
    if (ta != 1 || tb != 0 || algorithm != -1 || lda != k || ldb != k || ldc != m) return 7;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += at(a, akind, l + (size_t)i * lda) * at(b, bkind, l + (size_t)j * ldb);
            if (device == 1 && wrong && atoi(wrong) == compute && i == 5 && j == m - 1) sum += 1;
            if (ckind == 1) ((double *)c)[i + (size_t)j * ldc] = sum;
            else ((float *)c)[i + (size_t)j * ldc] = sum;
        }
    return 0;
}
