# SPDX-License-Identifier: GPL-2.0-only
#: make demo           a guest with our driver: verified I/O both ways, and a table (3 min)
.PHONY: demo
demo:
	tests/demo/run
