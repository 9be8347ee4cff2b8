/* Counts the system calls that change files below one folder, and injects a fault into the n-th.
 *
 * Load it with LD_PRELOAD and plan a fault with fault_arm. Modes:
 *   'k'  kill the process before the call
 *   'c'  power cut: as 'k', and truncate every file that was written but not flushed to half its size
 *   't'  torn write: write half of the bytes, then kill the process
 *   any other mode is an errno value with which the call fails
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 256
static char folder[4096];
static int plan = -1, mode, calls, sticky;
static int dirty[MOST]; /* descriptors of files with unflushed bytes; duplicates of those that were closed */
static int n_dirty;

void fault_arm(const char* under, int number, int how, int stays) {
    snprintf(folder, sizeof folder, "%s", under);
    plan = number, mode = how, calls = 0, sticky = stays, n_dirty = 0;
}
int fault_calls(void) { return calls; }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int inside(const char* path) { return plan >= 0 && strncmp(path, folder, strlen(folder)) == 0; }

static int inside_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return inside(path);
}

static void end_here(void) { kill(getpid(), SIGKILL); }

/* True if this call must fail; does not return if the process must die. */
static int fails(void) {
    const int at = calls++;
    if (at != plan && !(sticky && at > plan)) return 0;
    if (mode == 'c') {
        for (int i = 0; i < n_dirty; ++i) {
            struct stat about;
            if (fstat(dirty[i], &about) == 0) (void)!ftruncate(dirty[i], about.st_size / 2);
        }
    }
    if (mode == 'k' || mode == 'c') end_here();
    if (mode == 't') return 0;
    errno = mode;
    return 1;
}

static int place_of(int fd) {
    for (int i = 0; i < n_dirty; ++i)
        if (dirty[i] == fd) return i;
    return -1;
}

ssize_t write(int fd, const void* data, size_t size) {
    if (plan < 0 || !inside_fd(fd)) return REAL(write)(fd, data, size);
    if (mode == 't' && calls == plan) {
        (void)!REAL(write)(fd, data, size / 2);
        end_here();
    }
    if (fails()) return -1;
    if (place_of(fd) < 0 && n_dirty < MOST) dirty[n_dirty++] = fd;
    return REAL(write)(fd, data, size);
}

static int flushed(int fd, int (*real)(int)) {
    if (plan < 0 || !inside_fd(fd)) return real(fd);
    if (fails()) return -1;
    struct stat flushed_file, other;
    fstat(fd, &flushed_file);
    for (int i = 0; i < n_dirty;) { /* a flush is of the file, whichever descriptor wrote to it */
        if (fstat(dirty[i], &other) == 0 && other.st_ino == flushed_file.st_ino && other.st_dev == flushed_file.st_dev)
            dirty[i] = dirty[--n_dirty];
        else
            ++i;
    }
    return real(fd);
}
int fsync(int fd) { return flushed(fd, REAL(fsync)); }
int fdatasync(int fd) { return flushed(fd, REAL(fdatasync)); }

int close(int fd) {
    const int place = plan < 0 ? -1 : place_of(fd);
    if (place >= 0) dirty[place] = dup(fd);
    return REAL(close)(fd);
}

#define OPENS(name)                                             \
    int name(const char* path, int flags, ...) {                \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        const mode_t bits = va_arg(rest, mode_t);               \
        va_end(rest);                                           \
        if ((flags & O_CREAT) && inside(path) && fails()) return -1; \
        return REAL(name)(path, flags, bits);                   \
    }
OPENS(open)
OPENS(open64)

int mkdir(const char* path, mode_t bits) { return inside(path) && fails() ? -1 : REAL(mkdir)(path, bits); }
int rmdir(const char* path) { return inside(path) && fails() ? -1 : REAL(rmdir)(path); }
int unlink(const char* path) { return inside(path) && fails() ? -1 : REAL(unlink)(path); }
int rename(const char* from, const char* to) { return inside(to) && fails() ? -1 : REAL(rename)(from, to); }
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
    return inside(to) && fails() ? -1 : REAL(renameat2)(a, from, b, to, flags);
}
int ftruncate64(int fd, off64_t size) {
    if (plan >= 0 && inside_fd(fd) && fails()) return -1;
    return REAL(ftruncate64)(fd, size);
}
