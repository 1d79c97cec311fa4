/* What this needs of the kernel's interface, by its numbers: musl ships no kernel headers, and old
 * distributions' headers know neither the newer flags nor the newer calls. The numbers never change. */
#ifndef STILL_KERNEL_H
#define STILL_KERNEL_H
#include <stdint.h>
#include <sys/ioctl.h>

struct seccomp_data {
    int nr;
    uint32_t arch;
    uint64_t instruction_pointer;
    uint64_t args[6];
};
struct seccomp_notif {
    uint64_t id;
    uint32_t pid;
    uint32_t flags;
    struct seccomp_data data;
};
struct seccomp_notif_resp {
    uint64_t id;
    int64_t val;
    int32_t error;
    uint32_t flags;
};
struct seccomp_notif_sizes {
    uint16_t seccomp_notif, seccomp_notif_resp, seccomp_data;
};
#define SECCOMP_SET_MODE_FILTER 1
#define SECCOMP_GET_NOTIF_SIZES 3
#define SECCOMP_FILTER_FLAG_NEW_LISTENER (1UL << 3)
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#define SECCOMP_RET_USER_NOTIF 0x7fc00000U
#define SECCOMP_RET_ERRNO 0x00050000U
#define SECCOMP_RET_ALLOW 0x7fff0000U
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1U
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP 1UL
#define SECCOMP_IOCTL_NOTIF_RECV _IOWR('!', 0, struct seccomp_notif)
#define SECCOMP_IOCTL_NOTIF_SEND _IOWR('!', 1, struct seccomp_notif_resp)
#define SECCOMP_IOCTL_NOTIF_ID_VALID _IOW('!', 2, uint64_t)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS _IOW('!', 4, uint64_t)

struct sock_filter {
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};
struct sock_fprog {
    unsigned short len;
    struct sock_filter *filter;
};
#define BPF_LOAD 0x20      /* BPF_LD | BPF_W | BPF_ABS */
#define BPF_IF_EQUAL 0x15  /* BPF_JMP | BPF_JEQ | BPF_K */
#define BPF_IF_ANY_BIT 0x45 /* BPF_JMP | BPF_JSET | BPF_K */
#define BPF_IF_AT_LEAST 0x35 /* BPF_JMP | BPF_JGE | BPF_K */
#define BPF_MASK 0x54      /* BPF_ALU | BPF_AND | BPF_K */
#define BPF_GIVE 0x06      /* BPF_RET | BPF_K */

#define AUDIT_ARCH_X86_64 0xC000003EU
#define ARCH_SET_FS 0x1002
#define X32_SYSCALL_BIT 0x40000000U
#define NR_futex_waitv 449
#define NR_futex_wait 455
#define NR_openat2 437
#define NR_pidfd_open 434
#define PIDFD_THREAD 0200 /* O_EXCL; Linux 6.9 */
#define NR_pidfd_getfd 438
#define NR_pidfd_send_signal 424
#define NR_process_madvise 440

#define FUTEX_CLOCK_REALTIME 256
#define FUTEX_COMMANDS 0x7f
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13

struct procmap_query {
    uint64_t size, query_flags, query_addr;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};
#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)
#define PROCMAP_READABLE_EXECUTABLE 5 /* of these bits: readable 1, writable 2, executable 4, shared 8 */

#define RESOLVE_IN_ROOT 0x10
struct open_how {
    uint64_t flags, mode, resolve;
};

struct statx_time {
    int64_t sec;
    uint32_t nsec;
    int32_t reserved;
};
struct kernel_statx { /* struct statx; musl and old glibc lack the name */
    uint8_t before_mode[28];
    uint16_t mode;
    uint8_t before_times[34];
    struct statx_time atime, btime, ctime, mtime;
    uint8_t after_times[128];
};

struct cap_header {
    uint32_t version;
    int pid;
};
struct cap_data {
    uint32_t effective, permitted, inheritable;
};
#define CAP_VERSION_3 0x20080522U
#define CAP_DAC_OVERRIDE 1
#define CAP_DAC_READ_SEARCH 2
#define SECBIT_NO_FIXUP 4 /* SECBIT_NO_SETUID_FIXUP */
#define CAP_SETPCAP 8
#define CAP_SYS_PTRACE 19
#define CAP_SYS_ADMIN 21
#define ADDR_NO_RANDOMIZE 0x0040000
#endif
