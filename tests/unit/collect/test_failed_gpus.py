"""What a node with several GPUs left, where one of them fails."""

from stages_made import Made, recorded

from siteproof.collect import stages
from siteproof.record.pair_units import unit_of

JOB = {
    "metrics": ["fp64"],
    "parsers": {"gpu_gemm": "gpu_gemm"},
    "derive": "gpu.with_state",
    "expected": "n1",
    "point": {"fp64": ["gpu"]},
}


def collected(data, text):
    made = Made(data, "GpuGemm", **JOB)
    made.run(made.result("n1", "n1", program="gpu_gemm"), 1, text)
    return stages.collect(made.stage, made.perflogs)


def test_a_wrong_product_of_a_gpu_is_of_that_gpu_and_the_rates_of_the_others_count(tmp_path):
    found = collected(tmp_path, recorded("gpu_gemm/wrong"))
    bad = [(unit_of(s), s.metric, s.status, s.why) for s in found if s.status != "ok"]
    why = "gpu_gemm: fp64 of GPU 1: wrong 12 of 67108864 numbers of the result"
    assert bad == [("n1 gpu1", "GpuGemm.*", "invalid", why)]
    assert {unit_of(s) for s in found if s.status == "ok"} == {"n1 gpu0"}
    assert len(found) == 7


def test_where_no_gpu_has_a_right_product_the_node_has_failed(tmp_path):
    right = "gpu 0 fp64 n=8192 repeats=100 seconds=5.756605 gflops=19100.001"
    text = recorded("gpu_gemm/wrong").replace(right, "gpu 0 fp64 wrong 1 of 67108864")
    (one,) = collected(tmp_path, text)
    assert (unit_of(one), one.status) == ("n1", "invalid")
