/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a program load our libraries? One that does not runs over whatever device there is, or none,
 * and nobody would say so. Of a script nothing is said: its interpreter is another program.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run.h"

/* As execvp() finds it; a FIFO, which it would refuse, is not waited for. @return it, or -1. */
static int
open_program(const char *name)
{
	const char *from = getenv("PATH");
	char path[PATH_MAX];
	size_t len;

	if (strchr(name, '/') != NULL)
		return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	for (; from != NULL && *from != '\0'; from += len + (from[len] == ':')) {
		len = strcspn(from, ":");
		snprintf(path, sizeof(path), "%.*s%s%s", (int)len, from, len != 0 ? "/" : "", name);
		if (access(path, X_OK) == 0)
			return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	return -1;
}

/* The kernel gives it other rights than ours; then the loader takes no library of the user's. */
static bool
has_other_rights(int fd)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(fd, &st) != 0 || fstatvfs(fd, &fs) != 0 || (fs.f_flag & ST_NOSUID) != 0)
		return false;
	if ((st.st_mode & S_ISUID) != 0 && st.st_uid != getuid())
		return true;
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
		return true;
	return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* @param loader the name of its interpreter; "" if it has none. @return false: cannot be read. */
static bool
read_loader(int fd, const Elf64_Ehdr *elf, char loader[256])
{
	Elf64_Phdr part;
	ssize_t n;

	loader[0] = '\0';
	for (unsigned int i = 0; i < elf->e_phnum; i++) {
		n = pread(fd, &part, sizeof(part),
			(off_t)(elf->e_phoff + (size_t)i * elf->e_phentsize));
		if (n != (ssize_t)sizeof(part))
			return false;
		if (part.p_type != PT_INTERP)
			continue;
		n = pread(fd, loader, part.p_filesz < 255 ? part.p_filesz : 255,
			(off_t)part.p_offset);
		loader[n > 0 ? n : 0] = '\0';
		return n > 0;
	}
	return true;
}

/* @return why it loads none; NULL: it does, or it is not known. */
static const char *
why_none(int fd, const char *name)
{
	const char *slash = strrchr(name, '/');
	char loader[256];
	Elf64_Ehdr elf;

	if (pread(fd, &elf, sizeof(elf), 0) != (ssize_t)sizeof(elf) ||
		memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	if (elf.e_ident[EI_CLASS] != ELFCLASS64)
		return "it is a program of 32 bits";
	if (has_other_rights(fd))
		return "it is setuid, setgid, or has capabilities";
	if (!read_loader(fd, &elf, loader))
		return NULL;
	if (loader[0] == '\0' && strncmp(slash != NULL ? slash + 1 : name, "ld", 2) != 0)
		return "it is linked statically";
	return strstr(loader, "ld-musl") != NULL ? "it is linked with musl" : NULL;
}

void
run_judge(const char *name)
{
	const int fd = open_program(name);
	const char *why = fd >= 0 ? why_none(fd, name) : NULL;

	if (why != NULL)
		run_say("%s runs without rocelane: %s", name, why);
	if (fd >= 0)
		close(fd);
}
