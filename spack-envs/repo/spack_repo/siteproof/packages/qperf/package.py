"""qperf whose ~verbs holds: it builds for RDMA wherever it finds libibverbs, asked or not."""

from spack_repo.builtin.packages.qperf.package import Qperf as Upstream


class Qperf(Upstream):
    """As Spack's own, but without verbs it does not look for them."""

    def setup_build_environment(self, env):
        """Tell configure what it would find."""
        super().setup_build_environment(env)
        if self.spec.satisfies("~verbs"):
            env.set("ac_cv_lib_ibverbs_ibv_open_device", "no")
            env.set("ac_cv_lib_ibverbs_ibv_open_xrc_domain", "no")
            env.set("ac_cv_lib_rdmacm_rdma_create_id", "no")
