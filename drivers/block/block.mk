# SPDX-License-Identifier: GPL-2.0-only
#
# The guest driver. kbuild works on copies under build/KVER, so that several
# kernels' objects don't mix and the tree stays clean.

KVERS	:= $(notdir $(patsubst %/build,%,$(wildcard /lib/modules/*/build)))
KVER	?= $(KVERS)

#: make module         builds build/KVER/virtio_blk.ko and virtblk_uring.ko; KVER=RELEASE, default: every kernel with headers; W=1 for warnings
#:                     (UNTRIED=1: also for kernels that nobody has tried it with)
module: $(KVER:%=$(O)/%/virtio_blk.ko) $(KVER:%=$(O)/%/virtblk_uring.ko)
	@test -n "$(strip $(KVER))" || { echo "No kernel headers under /lib/modules: install linux-headers-amd64, or linux-headers-6.12-amd64" >&2; exit 1; }

# A debug kernel built here is no installed release.
kdir = $(if $(filter debug kcsan builtin,$(1)),$(CURDIR)/$(O)/$(1)/linux,/lib/modules/$(1)/build)

driver-src := $(wildcard drivers/block/*.c drivers/block/*.h) drivers/block/Kbuild drivers/block/probe.sh drivers/block/kernel-range.sh include/uapi/linux/virtio_blk_uring.h VERSION

# A debug kernel that was built anew wants its module anew.
.SECONDEXPANSION:
$(O)/%/virtio_blk.ko $(O)/%/virtblk_uring.ko: $(driver-src) $$(wildcard $(O)/$$*/release)
	@drivers/block/kernel-range.sh --note $(call kdir,$*)
	@mkdir -p $(O)/$*/module/drivers/block
	@cp $(filter drivers/%,$^) $(O)/$*/module/drivers/block/
	@cp VERSION $(O)/$*/module/
	@cp -r include $(O)/$*/module/
	$(MAKE) -C $(call kdir,$*) M=$(CURDIR)/$(O)/$*/module/drivers/block $(if $(W),W=$(W)) $(if $(C),C=$(C)) $(if $(CF),CF="$(CF)") modules
	@cp $(O)/$*/module/drivers/block/*.ko $(O)/$*/

#: make sparse         checks the driver with sparse, endianness included
sparse:
	@for k in $(KVER); do \
		rm -rf $(O)/$$k/*.ko $(O)/$$k/module/drivers/block/*.o; \
		$(MAKE) --no-print-directory module KVER=$$k C=1 CF="-D__CHECK_ENDIAN__ -Wsparse-error" || exit 1; \
	done

.PHONY: module sparse
