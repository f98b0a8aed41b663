# SPDX-License-Identifier: GPL-2.0-only

#: make fidelity       a table: what users see of 26 devices, in-tree driver and ours (KERNEL=REL)
fidelity: module device
	tests/fidelity/run $(if $(KERNEL),--kernel "$(KERNEL)")

.PHONY: fidelity
