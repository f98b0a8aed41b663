# SPDX-License-Identifier: GPL-2.0-only
#
# Plain installation: DESTDIR for packages, PREFIX for the tools. The module
# goes where depmod prefers it to the in-tree one.

PREFIX	?= /usr/local
udevdir	?= /lib/udev/rules.d
fiodir	= $(PREFIX)/lib/virtio-blk-uring

# What a build has left; only that is installed.
modules = $(wildcard $(O)/*-*/virtio_blk.ko)
rels	= $(patsubst $(O)/%/virtio_blk.ko,%,$(modules))

#: make install        installs what is built: module, udev rule, tool, fio engine, headers, man pages (DESTDIR, PREFIX)
install:
	@test -n "$(modules)" || { echo "Nothing is built yet: run make first" >&2; exit 1; }
	$(foreach r,$(rels),install -D -m 644 $(O)/$(r)/virtio_blk.ko $(DESTDIR)/lib/modules/$(r)/updates/virtio_blk.ko &&) true
	install -D -m 644 packaging/60-virtio-blk-uring.rules $(DESTDIR)$(udevdir)/60-virtio-blk-uring.rules
	install -D -m 644 include/uapi/linux/virtio_blk_uring.h $(DESTDIR)$(PREFIX)/include/linux/virtio_blk_uring.h
	$(if $(wildcard include/*.h),install -D -m 644 -t $(DESTDIR)$(PREFIX)/include $(wildcard include/*.h))
	$(if $(wildcard $(O)/t/io_uring-vblk),install -D $(O)/t/io_uring-vblk $(DESTDIR)$(PREFIX)/bin/io_uring-vblk)
	$(if $(wildcard $(O)/fio/fio-vblk.so),install -D -m 644 $(O)/fio/fio-vblk.so $(DESTDIR)$(fiodir)/fio-vblk.so)
	$(foreach m,$(wildcard man/*),install -D -m 644 $(m) $(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(m)))/$(notdir $(m)) &&) true
	$(if $(DESTDIR),,$(foreach r,$(rels),depmod $(r) &&) udevadm control --reload 2>/dev/null || true)

#: make uninstall      removes what make install has installed
uninstall:
	rm -f $(DESTDIR)/lib/modules/*/updates/virtio_blk.ko
	rm -f $(DESTDIR)$(udevdir)/60-virtio-blk-uring.rules
	rm -f $(DESTDIR)$(PREFIX)/include/linux/virtio_blk_uring.h $(addprefix $(DESTDIR)$(PREFIX)/,$(wildcard include/*.h))
	rm -f $(DESTDIR)$(PREFIX)/bin/io_uring-vblk $(DESTDIR)$(fiodir)/fio-vblk.so
	rm -f $(foreach m,$(wildcard man/*),$(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(m)))/$(notdir $(m)))
	$(if $(DESTDIR),,for r in /lib/modules/*/; do depmod $$(basename $$r); done)

.PHONY: install uninstall
