"""Every sweep file as a ReFrame test: ior_tasks.yaml is IorTasks, of its tool's class.

reframe -c sweeps/ -l
reframe -c sweeps/ -n IorTasks -r
"""

import reframe as rfm

from siteproof.checks import loading

for _test in loading.make(__name__):
    globals()[_test.__name__] = rfm.simple_test(_test)
