/* SPDX-License-Identifier: BSD-3-Clause */
/* A userfaultfd, as good a one as the kernel gives. See convert_uffd.h. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "convert_uffd.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static enum convert_way most = CONVERT_WAY_FULL;

int
convert_uffd_open(uint64_t features, enum convert_way *way)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int dev, fd = -1;

	*way = CONVERT_WAY_STOP;
	if (most == CONVERT_WAY_STOP)
		return -1;
	dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	*way = CONVERT_WAY_FULL;
#ifdef USERFAULTFD_IOC_NEW
	if (dev >= 0 && most == CONVERT_WAY_FULL)
		fd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC);
#endif
	if (dev >= 0)
		close(dev);
	if (fd < 0 && most == CONVERT_WAY_FULL)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0) {
		*way = CONVERT_WAY_USER_MODE;
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	}
	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	*way = CONVERT_WAY_STOP;
	return -1;
}

void
convert_use(enum convert_way way)
{
	most = way;
}

enum convert_way
convert_ways(void)
{
	enum convert_way way;
	const int fd = convert_uffd_open(0, &way);

	if (fd >= 0)
		close(fd);
	return way;
}
