# SPDX-License-Identifier: GPL-2.0-only
#
# virtblk-uring: everything starts here; "make help" lists the targets.
# Each part of the tree keeps its own rules in a fragment beside it.

O	:= build
CC	?= gcc
CFLAGS	?= -O2 -g
WARN	:= -Wall -Wextra -Wno-unused-parameter

all: module tools

help:
	@sed -n 's/^#: //p' $(MAKEFILE_LIST)

.PHONY: all help clean
.DELETE_ON_ERROR:

include $(wildcard drivers/*/*.mk t/*.mk tests/*.mk tests/*/*.mk fio-engine/*.mk examples/*.mk packaging/*.mk Documentation/*.mk)

#: make clean          removes build/
clean:
	rm -rf $(O)
