"""Matrix products on all GPUs of a node at once, by cuBLAS or rocBLAS.

    gpu_gemm.py N SECONDS PRECISION...

Runs on nodes, also with Python 3.6, and needs nothing but the library: of the path of libraries, or
of NVIDIA's wheels. The matrices are of small whole numbers and repeat every PERIOD columns, so the
result is known, and exact in each precision. It is filled with other bytes first, and all of it is
compared after the last product. siteproof/parsers/gpu_gemm.py has the format of what is printed.
"""

# ruff: noqa: T201, UP006, UP035, UP045
import ctypes
import importlib.util
import random
import struct
import sys
import threading
from operator import mul
from pathlib import Path
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

PERIOD = 32  # columns
ENTRIES = (-2, -1, 1, 2)
FILLED = 0xA5
TO_GPU, FROM_GPU = 1, 2  # kinds of cudaMemcpy and of hipMemcpy
VERSIONS = range(16, 0, -1)  # of a library's name
CUDA_TRANSPOSED, CUDA_PLAIN, CUDA_ANY = 1, 0, -1
ROCM_TRANSPOSED, ROCM_PLAIN = 112, 111

Kinds = Tuple[int, int, int]  # of the matrices, of the result, of the computation


class Precision(NamedTuple):
    """How numbers are stored, as struct names it, and what the libraries call it."""

    form: str  # empty: bfloat16, the upper half of a float
    result: str
    cuda: Kinds  # cudaDataType, cublasComputeType_t
    rocm: Optional[Kinds]  # rocblas_datatype; None: it has no such precision


PRECISIONS = {
    "fp64": Precision("d", "d", (1, 1, 70), (152, 152, 152)),
    "fp32": Precision("f", "f", (0, 0, 68), (151, 151, 151)),
    "tf32": Precision("f", "f", (0, 0, 77), None),
    "fp16": Precision("e", "f", (2, 0, 68), (150, 151, 151)),
    "bf16": Precision("", "f", (14, 0, 68), (168, 151, 151)),
    "int8": Precision("b", "i", (3, 10, 72), (160, 162, 162)),
}
SCALARS = {"d": ctypes.c_double, "f": ctypes.c_float, "i": ctypes.c_int32}  # type: Any


class Unsupported(Exception):
    """The library does not have the precision on this GPU."""


class Library:
    """The runtime and the BLAS of one maker. Raises OSError where they are not installed."""

    def __init__(self, maker: str, runtime: str, blas: str, unsupported: Tuple[int, ...]) -> None:
        self.maker, self.name, self.unsupported = maker, blas, unsupported
        self.runtime, self.blas = load(runtime), load(blas)

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the runtime, such as Malloc. Raises RuntimeError."""
        code = getattr(self.runtime, self.maker + name)(*arguments)
        if code:
            text = getattr(self.runtime, self.maker + "GetErrorString")
            text.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {text(code).decode('ascii', 'replace')}")

    def must(self, what: str, code: int) -> None:
        """Raises Unsupported and RuntimeError."""
        if code in self.unsupported:
            raise Unsupported(f"{self.name} has status {code}")
        if code:
            raise RuntimeError(f"{what} of {self.name}: status {code}")

    def handle(self) -> ctypes.c_void_p:
        """Of the BLAS, for the GPU of this thread."""
        found = ctypes.c_void_p()
        create = "cublasCreate_v2" if self.name == "cublas" else "rocblas_create_handle"
        self.must("a handle", getattr(self.blas, create)(ctypes.byref(found)))
        return found

    def product(self, handle: ctypes.c_void_p, how: Precision, n: int, at: List[int]) -> None:
        """The third matrix becomes the transposed first by the second."""
        one, zero = (ctypes.byref(SCALARS[how.result](number)) for number in (1, 0))
        a, b, c = (ctypes.c_void_p(address) for address in at)
        if self.name == "cublas":
            kind, result, compute = how.cuda
            factors = (one, a, kind, n, b, kind, n, zero)
            code = self.blas.cublasGemmEx(
                *(handle, CUDA_TRANSPOSED, CUDA_PLAIN, n, n, n, *factors),
                *(c, result, n, compute, CUDA_ANY),
            )
        elif how.rocm is None:
            raise Unsupported("rocblas has no such precision")
        else:
            kind, result, compute = how.rocm
            factors = (one, a, kind, n, b, kind, n, zero)
            code = self.blas.rocblas_gemm_ex(
                *(handle, ROCM_TRANSPOSED, ROCM_PLAIN, n, n, n, *factors),
                *(c, result, n, c, result, n, compute, 0, 0, 0),
            )
        self.must("a product", code)


# The statuses: not supported and wrong architecture; not implemented and invalid value.
MAKERS = (("cuda", "cudart", "cublas", (15, 8)), ("hip", "amdhip64", "rocblas", (2, 11)))


def load(name: str) -> ctypes.CDLL:
    """A library by its name. Raises OSError."""
    spec = importlib.util.find_spec("nvidia")  # the folder of NVIDIA's wheels
    folders = list(spec.submodule_search_locations or ()) if spec else []
    wheels = [path for one in folders for path in Path(one).glob(f"*/lib/lib{name}.so.*")]
    named = [f"lib{name}.so", *(f"lib{name}.so.{version}" for version in VERSIONS)]
    for path in (*map(str, wheels), *named):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise OSError(f"lib{name}.so")


class Problem:
    """The first PERIOD columns of both matrices and of the result, of the order n."""

    def __init__(self, n: int) -> None:
        chance = random.Random(n)
        self.n, self.times = n, n // PERIOD
        a, b = ([[chance.choice(ENTRIES) for _ in range(n)] for _ in range(PERIOD)] for _ in "ab")
        self.factors = (a, b)
        self.result = [
            sum(map(mul, one, other)) for other in b for _ in range(self.times) for one in a
        ]

    def stored(self, how: Precision) -> List[bytes]:
        """Both matrices as the GPU has them."""
        return [
            b"".join(
                struct.pack(f"<{self.n}{how.form}", *column)
                if how.form
                else b"".join(struct.pack("<f", number)[2:] for number in column)
                for column in columns
            )
            for columns in self.factors
        ]


class OnGpu(threading.Thread):
    """A GPU that does its products while the others do theirs."""

    def __init__(
        self, gpu: int, how: Precision, library: Library, problem: Problem, seconds: float
    ) -> None:
        super().__init__()
        self.gpu, self.how, self.seconds = gpu, how, seconds
        self.call, self.library, self.problem = library.call, library, problem
        self.said = ""

    def run(self) -> None:
        """Sets what is printed of it."""
        try:
            self.said = self.measured()
        except Unsupported as error:
            self.said = f"unsupported {error}"
        except Exception as error:
            self.said = f"failed {' '.join(str(error).split())}"

    def measured(self) -> str:
        """The time of all products, or how many numbers of the last one are wrong."""
        n, how = self.problem.n, self.how
        self.call("SetDevice", self.gpu)
        handle = self.library.handle()
        size = struct.calcsize(how.result) * n * n
        at = [*map(self.uploaded, self.problem.stored(how)), self.allocated(size)]

        def product() -> None:
            self.library.product(handle, how, n, at)

        product()
        repeats = max(1, int(self.seconds / self.timed(product, 1)))
        self.call("Memset", ctypes.c_void_p(at[2]), FILLED, ctypes.c_size_t(size))
        took = self.timed(product, repeats)
        wrong = self.wrong(at[2])
        for address in at:
            self.call("Free", ctypes.c_void_p(address))
        if wrong:
            return f"wrong {wrong} of {n * n}"
        rate = 2.0 * n**3 * repeats / took / 1e9
        return f"n={n} repeats={repeats} seconds={took:.6f} gflops={rate:.3f}"

    def allocated(self, size: int) -> int:
        """The address of so many bytes of the GPU."""
        found = ctypes.c_void_p()
        self.call("Malloc", ctypes.byref(found), ctypes.c_size_t(size))
        return int(found.value or 0)

    def uploaded(self, columns: bytes) -> int:
        """The address of a matrix that repeats these columns."""
        size = len(columns)
        address = self.allocated(size * self.problem.times)
        for number in range(self.problem.times):
            there = ctypes.c_void_p(address + number * size)
            self.call("Memcpy", there, columns, ctypes.c_size_t(size), TO_GPU)
        return address

    def timed(self, product: Callable[[], None], repeats: int) -> float:
        """Seconds of so many products, by the GPU's own clock."""
        first, last, took = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        self.call("EventCreate", ctypes.byref(first))
        self.call("EventCreate", ctypes.byref(last))
        self.call("EventRecord", first, None)
        for _ in range(repeats):
            product()
        self.call("EventRecord", last, None)
        self.call("EventSynchronize", last)
        self.call("EventElapsedTime", ctypes.byref(took), first, last)
        return max(took.value, 0.001) / 1000  # ms

    def wrong(self, address: int) -> int:
        """How many numbers of the result are not those that are known."""
        form = f"<{len(self.problem.result)}{self.how.result}"
        known = struct.pack(form, *self.problem.result)
        found, count = ctypes.create_string_buffer(len(known)), 0
        for number in range(self.problem.times):
            there = ctypes.c_void_p(address + number * len(known))
            self.call("Memcpy", found, there, ctypes.c_size_t(len(known)), FROM_GPU)
            if found.raw != known:
                numbers = struct.unpack(form, found.raw)
                count += sum(
                    map(float.__ne__, map(float, numbers), map(float, self.problem.result))
                )
        return count


def library_here() -> Library:
    """That of the first maker. Ends with the code of a missing program."""
    lacking = []
    for maker in MAKERS:
        try:
            return Library(*maker)
        except OSError as error:
            lacking.append(str(error))
    print(f"neither {' nor '.join(lacking)} is installed", file=sys.stderr)
    sys.exit(127)


def main(size: str, seconds: str, *precisions: str) -> None:
    """A line a GPU and precision."""
    library, gpus = library_here(), ctypes.c_int()
    library.call("GetDeviceCount", ctypes.byref(gpus))
    problem = Problem(int(size))
    print(f"# gpu_gemm {library.name}, {gpus.value} gpus, {len(precisions)} precisions")
    for name in precisions:
        how = PRECISIONS[name]
        each = [OnGpu(gpu, how, library, problem, float(seconds)) for gpu in range(gpus.value)]
        for one in each:
            one.start()
        for one in each:
            one.join()
            print(f"gpu {one.gpu} {name} {one.said}", flush=True)
    print("# end of gpu_gemm")


if __name__ == "__main__":
    main(*sys.argv[1:])
