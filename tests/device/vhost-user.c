// SPDX-License-Identifier: GPL-2.0-only
#include "device.h"
void vhost_user_set_socket(const char *path) { die("--vhost-user is not built in"); }
const struct transport vhost_user_transport = { .name = "vhost-user" };
