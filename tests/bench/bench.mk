# SPDX-License-Identifier: GPL-2.0-only
BENCH := $(O)/bench

.PHONY: bench-tools bench bench-gate

bench-tools: $(BENCH)/meter.so $(BENCH)/client

$(BENCH)/meter.so: tests/bench/plugin.c tests/bench/marker.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -fPIC -shared -fvisibility=hidden -o $@ $<

# Static: it must start in a guest that has nothing else of ours.
$(BENCH)/client: tests/bench/client.c tests/bench/marker.h include/uapi/linux/virtio_blk_uring.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(WARN) -D_GNU_SOURCE -Iinclude/uapi -static -o $@ $< -luring -lpthread

#: make bench          cost per I/O by driver and path: tables, JSON and plots in build/bench/
bench: module bench-tools
	tests/bench/bench

#: make bench-gate     fails when a row of the goals is missed
bench-gate: module bench-tools
	tests/bench/bench --gate
