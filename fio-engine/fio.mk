# SPDX-License-Identifier: GPL-2.0-only
#
# fio's cmd_type=vblk

FIO_ENGINE	:= fio-engine
FIO_DEPS	:= $(wildcard $(FIO_ENGINE)/vblk*.[ch] $(FIO_ENGINE)/preload.c \
			$(FIO_ENGINE)/build $(FIO_ENGINE)/get-source \
			$(FIO_ENGINE)/patches/*/*.patch) \
			include/uapi/linux/virtio_blk_uring.h

.PHONY: fio fio-whole sanitized

#: make fio            fio-vblk.so, cmd_type=vblk for the fio that is installed
fio: $(O)/fio/fio-vblk.so

$(O)/fio/fio-vblk.so: $(FIO_DEPS)
	$(FIO_ENGINE)/build installed $(O)/fio

#: make fio-whole      fio itself with cmd_type=vblk: the installed version as
#:                     build/fio/own, Debian's newest as build/fio/newest
fio-whole: $(O)/fio/own $(O)/fio/newest

$(O)/fio/own: $(FIO_DEPS)
	$(FIO_ENGINE)/build --whole installed $(O)/fio > $@.path
	ln -sfn "$$(cat $@.path)" $@

$(O)/fio/newest: $(FIO_DEPS)
	@# not an old one, if this one can't be made
	@mkdir -p $(@D) && rm -f $@
	$(FIO_ENGINE)/build --whole --suite sid newest $(O)/fio > $@.path
	ln -sfn "$$(cat $@.path)" $@
	@# else a change that isn't in it would be made, and asked for, each time
	touch $@

# For tests: built with the address, leak and undefined-behaviour checkers
SANITIZE := -fsanitize=address,undefined -fno-omit-frame-pointer

sanitized: $(O)/sanitized/fio/fio-vblk.so sanitized-tool

$(O)/sanitized/fio/fio-vblk.so: $(FIO_DEPS) | $(O)/fio/fio-vblk.so
	@mkdir -p $(@D)
	ln -sfn ../../fio/src $(@D)/src
	ASAN_OPTIONS=verify_asan_link_order=0 CFLAGS_EXTRA="$(SANITIZE)" \
		$(FIO_ENGINE)/build installed $(@D)
