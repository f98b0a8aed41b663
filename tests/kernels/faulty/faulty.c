// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module with every kind of fault the debug kernels look for, one at a time:
 * "insmod faulty.ko fault=NAME". It shows that a clean run on them means something.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

static char *fault = "none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "which fault to show: the name of a function fault_NAME");

static struct mutex lock_a, lock_b;
static int raced;
static volatile int seven = 7;

static void fault_none(void)
{
}

static void fault_use_after_free(void)
{
	volatile char *p = kmalloc(100, GFP_KERNEL);

	kfree((void *)p);
	if (p)
		pr_info("read %d\n", p[50]);
}

static void fault_out_of_bounds(void)
{
	volatile char *p = kzalloc(100, GFP_KERNEL);

	if (p)
		pr_info("read %d\n", p[93 + seven]);
	kfree((void *)p);
}

static void fault_leak(void)
{
	int i;

	/* One alone might hide behind a stale pointer in a register or on a stack. */
	for (i = 0; i < 16; i++)
		if (!kmalloc(123, GFP_KERNEL))
			pr_info("no memory to leak\n");
}

static void fault_lock_order(void)
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);
	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
}

static void fault_atomic_sleep(void)
{
	preempt_disable();
	might_sleep();
	preempt_enable();
}

static void fault_shift(void)
{
	pr_info("shifted: %d\n", 1 << (25 + seven));
}

static void fault_list(void)
{
	LIST_HEAD(head);
	struct list_head item;

	list_add(&item, &head);
	list_add(&item, &head);
}

static void fault_scatterlist(void)
{
	struct scatterlist sg = { .page_link = SG_CHAIN };

	pr_info("no page at %p\n", sg_page(&sg));
}

static void nothing(struct work_struct *work)
{
}

static void fault_live_work(void)
{
	struct delayed_work *work = kzalloc(sizeof(*work), GFP_KERNEL);

	if (!work)
		return;
	INIT_DELAYED_WORK(work, nothing);
	schedule_delayed_work(work, 100 * HZ);
	kfree(work);
}

static int race(void *unused)
{
	while (!kthread_should_stop()) {
		raced++;
		cond_resched();
	}
	return 0;
}

static void fault_data_race(void)
{
	struct task_struct *other = kthread_run(race, NULL, "faulty");
	unsigned long end = jiffies + 5 * HZ;

	if (IS_ERR(other))
		return;
	while (time_before(jiffies, end)) {
		raced++;
		cond_resched();
	}
	kthread_stop(other);
}

#define FAULT(name) { #name, fault_##name }
static const struct {
	const char *name;
	void (*show)(void);
} faults[] = {
	FAULT(none), FAULT(use_after_free), FAULT(out_of_bounds), FAULT(leak), FAULT(lock_order),
	FAULT(atomic_sleep), FAULT(shift), FAULT(list), FAULT(scatterlist), FAULT(live_work),
	FAULT(data_race),
};

static int __init faulty_init(void)
{
	int i;

	mutex_init(&lock_a);
	mutex_init(&lock_b);
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (strcmp(fault, faults[i].name) == 0) {
			faults[i].show();
			return 0;
		}
	}
	return -EINVAL;
}

static void __exit faulty_exit(void)
{
}

module_init(faulty_init);
module_exit(faulty_exit);
MODULE_DESCRIPTION("faults for the debug kernels to find");
MODULE_LICENSE("GPL");
