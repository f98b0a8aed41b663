# SPDX-License-Identifier: GPL-2.0-only
#
# vhost_blk.ko, apart from "make module": it needs the kernel's source package,
# because vhost keeps its header to itself.

# Kernels whose vhost has several workers (6.5); we ask for 6.12.
vhost-kvers = $(foreach k,$(KVER),$(if $(shell grep -ls VHOST_NEW_WORKER $(call kdir,$(k))/source/include/uapi/linux/vhost.h \
	/lib/modules/$(k)/source/include/uapi/linux/vhost.h),$(k)))

#: make vhost-module   builds build/KVER/vhost_blk.ko, for 6.12 and newer; takes vhost.h from the package linux-source-6.12
vhost-module:
	@test -n "$(strip $(vhost-kvers))" || { echo "vhost_blk needs the headers of Linux 6.12 or newer: install linux-headers-6.12-amd64" >&2; exit 1; }
	$(foreach k,$(vhost-kvers),$(MAKE) --no-print-directory $(O)/$(k)/vhost_blk.ko &&) true

vhost-src := $(wildcard drivers/vhost/*.c drivers/vhost/*.sh) drivers/vhost/Kbuild include/uapi/linux/vhost_blk.h VERSION

$(O)/%/vhost_blk.ko: $(vhost-src)
	@mkdir -p $(O)/$*/vhost/drivers/vhost
	@cp drivers/vhost/vhost_blk.c drivers/vhost/Kbuild $(O)/$*/vhost/drivers/vhost/
	@cp VERSION $(O)/$*/vhost/
	@cp -r include $(O)/$*/vhost/
	drivers/vhost/prepare.sh $* $(call kdir,$*) $(O)/$*/vhost/drivers/vhost/private
	$(MAKE) -C $(call kdir,$*) M=$(CURDIR)/$(O)/$*/vhost/drivers/vhost $(if $(W),W=$(W)) $(if $(C),C=$(C)) $(if $(CF),CF="$(CF)") modules
	@cp $(O)/$*/vhost/drivers/vhost/vhost_blk.ko $@

#: make vhost-sparse   the same with warnings and sparse, endianness included
vhost-sparse:
	@rm -f $(foreach k,$(vhost-kvers),$(O)/$(k)/vhost_blk.ko $(O)/$(k)/vhost/drivers/vhost/*.o)
	@$(MAKE) --no-print-directory vhost-module W=1 C=1 CF="-D__CHECK_ENDIAN__ -Wsparse-error"

.PHONY: vhost-module vhost-sparse
