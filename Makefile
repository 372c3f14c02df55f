.PHONY: venv
venv:
	@setup/venv
