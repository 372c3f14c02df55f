#: Siteproof: is this system, every node of it, still what was promised?
#:
#:   make run        first use: set this clone up, check this machine in quick mode, say the verdict
#:   make venv       only the Python part: .venv in this clone, from setup/requirements.lock
#:   make packages   only Debian's packages: asks first, and only as root on a machine of no cluster
#:   make mkl        for Hpl on Intel MKL too: into .mkl in this clone, from setup/mkl.lock
#:   make quick      format, lint, types and unit tests, in about a minute
#:   make test       all tests and linters, but those on services and clouds, and the long ones
#:   make test-services  the tests on real services: SSH, HTTP, S3, Kerberos, JupyterHub, a desktop
#:   make test-cloud  the tests on a real cloud: OpenStack, Ceph, Galaxy, and guests as nodes
#:   make test-all   for every night: all of these, the long ones too, with random cases of its own,
#:                   and the test bed's tests on the Slurm of Debian trixie
#:   make test-weekly  what takes hours: many random histories, a soak; the test bed on sid's Slurm
#:   make mutants    what the tests prove: which of the mistakes in tests/mutants they find
#:   make by-hand    each tool by hand and by its check in turns: ratio and 95 % interval, 8 minutes
#:   make golden     record anew what every command prints, and the docs' screens, reference, layouts and picture
#:   make docs       the docs as a site that needs no network, in dist/docs; strict, in seconds
#:   make man        the man pages, for 'man siteproof' after '. ./activate'
#:   make clean      remove stage/, output/ and caches; perflogs/ stays
#:
#: After 'make venv':
#:
#:   . ./activate
#:   reframe -c checks/ -r       measure
#:   siteproof verdict           judge
#:
#: For a login node without network: 'make wheels' elsewhere, carry wheels/ over, then
#: SITEPROOF_WHEELS=wheels make venv

.PHONY: help run venv packages wheels mkl quick test test-services test-cloud test-all test-weekly \
	mutants by-hand golden docs man clean
help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

run:
	@setup/run

venv:
	@setup/venv

packages:
	@setup/packages

wheels:
	@setup/wheels

mkl:
	@setup/mkl

quick:
	@setup/quick

test:
	@setup/test

test-services:
	@setup/test --services

test-cloud:
	@setup/test --cloud

test-all:
	@setup/test --all

test-weekly:
	@setup/test --weekly

mutants:
	@.venv/bin/python tests/mutants/run.py

by-hand:
	@.venv/bin/python -m pytest -q -s tests/bed/test_by_hand.py

golden:
	@.venv/bin/python tests/golden/record.py --write
	@.venv/bin/python tests/golden/screens.py --write
	@.venv/bin/python tests/golden/reference.py --write
	@.venv/bin/python tests/golden/picture.py --write
	@.venv/bin/python tests/support/tools.py --layouts docs/tools.md

docs:
	@setup/docs

man:
	@setup/venv
	@.venv/bin/python setup/man.py

clean:
	@setup/clean
