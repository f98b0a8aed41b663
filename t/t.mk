# SPDX-License-Identifier: GPL-2.0-only
# The tools: io_uring-vblk, and vblk-pattern, which tests and the demo use

T_CFLAGS := -std=gnu11 -D_GNU_SOURCE -Iinclude -Iinclude/uapi -It \
	    -DVERSION='"$(shell cat VERSION)"' $(CFLAGS) $(WARN)

TOOL_OBJS := $(patsubst %,$(O)/t/%.o,io_uring-vblk options target load ring worker \
	     legacy run compare report hist pattern words)
SELFTEST_OBJS := $(patsubst %,$(O)/t/%.o,tool-selftest hist pattern)
PATTERN_OBJS := $(patsubst %,$(O)/t/%.o,vblk-pattern pattern)

#: make tools          the tools: build/t/io_uring-vblk and others
#: make tool           the same
.PHONY: tools tool
tools tool: $(O)/t/io_uring-vblk $(O)/t/vblk-pattern t/io_uring-vblk

# Where the README's and the proposal's command lines look for it
t/io_uring-vblk: | $(O)/t/io_uring-vblk
	ln -sf ../$(O)/t/io_uring-vblk $@

$(O)/t/io_uring-vblk: $(TOOL_OBJS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -luring -lpthread

$(O)/t/vblk-pattern: $(PATTERN_OBJS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -luring

$(O)/t/tool-selftest: $(SELFTEST_OBJS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm

$(O)/t/%.o: t/%.c t/tool.h include/virtblk_uring_helpers.h \
		 include/uapi/linux/virtio_blk_uring.h VERSION t/t.mk
	@mkdir -p $(@D)
	$(CC) $(T_CFLAGS) -c -o $@ $<

# With the address, leak and undefined-behaviour checkers, for tests
.PHONY: sanitized-tool
sanitized-tool:
	@$(MAKE) --no-print-directory O=$(O)/sanitized $(O)/sanitized/t/io_uring-vblk \
		CFLAGS="-O1 -g -fsanitize=address,undefined"
