# SPDX-License-Identifier: GPL-2.0-only
#
# Plain installation: DESTDIR for packages, PREFIX for the tools. The modules go
# where depmod prefers them to the in-tree one.

PREFIX	?= /usr/local
udevdir	?= /lib/udev/rules.d
fiodir	= $(PREFIX)/lib/virtio-blk-uring
exdir	?= $(PREFIX)/share/doc/virtio-blk-uring/examples
mandir	= $(PREFIX)/share/man

# What a build has left; only that is installed.
modules	= $(wildcard $(O)/*-*/virtio_blk.ko $(O)/*-*/virtblk_uring.ko)
rels	= $(sort $(notdir $(patsubst %/,%,$(dir $(modules)))))

# The server's module is a build of its own (make vhost-module): header and man
# page come with it.
vhost_modules = $(wildcard $(O)/*-*/vhost_blk.ko)

admin_man := man/virtblk-move.8
vhost_man := man/vhost_blk.4
user_man = $(filter-out $(admin_man) $(vhost_man),$(wildcard man/*.[1-9]))
man_in	= $(DESTDIR)$(mandir)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))

#: make install        installs what is built: modules, udev rule, virtblk-move, tool, fio engine, headers, man pages (DESTDIR, PREFIX)
install: install-module install-admin install-tools install-dev $(if $(vhost_modules),install-vhost)
	$(if $(DESTDIR),,$(foreach r,$(rels),depmod $(r) &&) udevadm control --reload 2>/dev/null || true)

install-module:
	@test -n "$(modules)" || { echo "Nothing is built yet: run make first" >&2; exit 1; }
	$(foreach m,$(modules),install -D -m 644 $(m) $(DESTDIR)/lib/modules/$(patsubst $(O)/%,%,$(dir $(m)))updates/$(notdir $(m)) &&) true

# What goes with the modules, whatever kernel they are for
install-admin:
	install -D -m 644 packaging/60-virtio-blk-uring.rules $(DESTDIR)$(udevdir)/60-virtio-blk-uring.rules
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(exdir)
	sed 's/@VERSION@/$(shell cat VERSION)/' packaging/virtblk-move >$(DESTDIR)$(PREFIX)/sbin/virtblk-move
	chmod 755 $(DESTDIR)$(PREFIX)/sbin/virtblk-move
	install -D -m 644 $(admin_man) $(call man_in,$(admin_man))
	sed 's,/usr/sbin/virtblk-move,$(PREFIX)/sbin/virtblk-move,' packaging/61-virtblk-move.rules >$(DESTDIR)$(exdir)/61-virtblk-move.rules
	install -m 644 packaging/virtio-blk-uring.conf packaging/dracut-virtio-blk-uring.conf $(DESTDIR)$(exdir)/

install-tools:
	$(if $(wildcard $(O)/t/io_uring-vblk),install -D $(O)/t/io_uring-vblk $(DESTDIR)$(PREFIX)/bin/io_uring-vblk)
	$(if $(wildcard $(O)/fio/fio-vblk.so),install -D -m 644 $(O)/fio/fio-vblk.so $(DESTDIR)$(fiodir)/fio-vblk.so)
	$(foreach m,$(user_man),install -D -m 644 $(m) $(call man_in,$(m)) &&) true

install-dev:
	install -D -m 644 include/uapi/linux/virtio_blk_uring.h $(DESTDIR)$(PREFIX)/include/linux/virtio_blk_uring.h
	$(if $(wildcard include/*.h),install -D -m 644 -t $(DESTDIR)$(PREFIX)/include $(wildcard include/*.h))

install-vhost:
	$(foreach m,$(vhost_modules),install -D -m 644 $(m) $(DESTDIR)/lib/modules/$(patsubst $(O)/%,%,$(dir $(m)))updates/vhost_blk.ko &&) true
	install -D -m 644 include/uapi/linux/vhost_blk.h $(DESTDIR)$(PREFIX)/include/linux/vhost_blk.h
	install -D -m 644 $(vhost_man) $(call man_in,$(vhost_man))

#: make uninstall      removes what make install has installed
uninstall:
	rm -f $(DESTDIR)/lib/modules/*/updates/virtio_blk.ko $(DESTDIR)/lib/modules/*/updates/virtblk_uring.ko
	rm -f $(DESTDIR)/lib/modules/*/updates/vhost_blk.ko $(DESTDIR)$(PREFIX)/include/linux/vhost_blk.h
	rm -f $(DESTDIR)$(udevdir)/60-virtio-blk-uring.rules
	rm -f $(DESTDIR)$(PREFIX)/sbin/virtblk-move $(DESTDIR)$(exdir)/61-virtblk-move.rules $(DESTDIR)$(exdir)/virtio-blk-uring.conf $(DESTDIR)$(exdir)/dracut-virtio-blk-uring.conf
	rm -f $(DESTDIR)$(PREFIX)/include/linux/virtio_blk_uring.h $(addprefix $(DESTDIR)$(PREFIX)/,$(wildcard include/*.h))
	rm -f $(DESTDIR)$(PREFIX)/bin/io_uring-vblk $(DESTDIR)$(fiodir)/fio-vblk.so
	rm -f $(foreach m,$(user_man) $(admin_man) $(vhost_man),$(call man_in,$(m)))
	rmdir -p --ignore-fail-on-non-empty $(wildcard $(DESTDIR)$(exdir) $(DESTDIR)$(fiodir)) 2>/dev/null || true
	$(if $(DESTDIR),,for r in /lib/modules/*/modules.order; do depmod "$$(basename "$$(dirname "$$r")")"; done; udevadm control --reload 2>/dev/null || true)

.PHONY: install install-module install-admin install-tools install-dev install-vhost uninstall
