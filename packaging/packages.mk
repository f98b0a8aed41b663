# SPDX-License-Identifier: GPL-2.0-only
#
# DKMS, Debian packages, signed modules

version	:= $(shell cat VERSION)
dkms-src = /usr/src/virtio-blk-uring-$(version)
deb-name = virtio-blk-uring-$(version)

# The driver's source as DKMS wants it. Packages say it by dh_dkms.
install-dkms-source:
	install -d $(DESTDIR)$(dkms-src)/drivers/block $(DESTDIR)$(dkms-src)/include/uapi/linux
	install -m 644 $(filter drivers/%,$(driver-src)) $(DESTDIR)$(dkms-src)/drivers/block/
	install -m 644 include/uapi/linux/virtio_blk_uring.h $(DESTDIR)$(dkms-src)/include/uapi/linux/
	install -m 644 VERSION $(DESTDIR)$(dkms-src)/

#: make dkms           gives the driver to this machine's DKMS, which builds it for KVER (all that have headers) and the coming ones
dkms: install-dkms-source install-admin
	@test -n "$(strip $(KVER))" || { echo "No kernel headers under /lib/modules: install linux-headers-amd64, or linux-headers-6.12-amd64" >&2; exit 1; }
	@command -v dkms >/dev/null || { echo "There is no dkms: install the package dkms" >&2; exit 1; }
	sed 's/#MODULE_VERSION#/$(version)/' packaging/dkms.conf >$(dkms-src)/dkms.conf
	dkms add -m virtio-blk-uring -v $(version)
	@# 77: that kernel is none for it, and dkms has said why.
	for k in $(KVER); do \
		dkms install -m virtio-blk-uring -v $(version) -k $$k && there=1 || [ $$? = 77 ] || exit 1; \
	done; test -n "$$there"
	@echo "If the root disk is a virtio-blk disk: update-initramfs -u, and reboot."

#: make dkms-remove    takes it back from DKMS (make uninstall removes the rule and virtblk-move)
dkms-remove:
	dkms remove -m virtio-blk-uring -v $(version) --all
	rm -rf $(dkms-src)

#: make deb            Debian packages in build/deb: -dkms, -utils, -dev; an error or a warning of lintian fails it
deb:
	tests/vm/need +deb
	$(MAKE) fio
	rm -rf $(O)/deb
	mkdir -p $(O)/deb/$(deb-name)/build/fio
	tar -c --exclude=./build --exclude=./.git . | tar -x -C $(O)/deb/$(deb-name)
	@# fio's source is fetched once, not by the package's build.
	cp -r $(O)/fio/src $(O)/deb/$(deb-name)/build/fio/
	packaging/changelog CHANGELOG.md >$(O)/deb/$(deb-name)/debian/changelog
	cd $(O)/deb/$(deb-name) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS dpkg-buildpackage -b -us -uc -tc
	lintian --fail-on error,warning $(O)/deb/*.changes

#: make sign           signs what is built with KEY=file.key CERT=file.der (made in build/sign if there are none)
sign:
	packaging/sign $(if $(KEY),--key $(KEY)) $(if $(CERT),--cert $(CERT)) $(O) $(modules)

.PHONY: install-dkms-source dkms dkms-remove deb sign
