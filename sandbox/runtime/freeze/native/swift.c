/* stat without the supervisor. A program that asks for many files' times gets, after the first few,
 * our code into its own: the `mov $nr, %eax; syscall` that asked becomes a jump to a copy of the code
 * below, in the zeros behind the text of the library it stands in. It makes the same call with a
 * number nobody else knows in a register the call does not use, which the filter lets through, and
 * then does to the times what files.c does. Where anything is not as expected, nothing is changed
 * and the program goes on asking. Children have it from their parent until they exec. */
#define _GNU_SOURCE
#include "still.h"
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
extern const uint8_t swift[], swift_end[], swift_cookie[], swift_since[], 
    swift_real0[], swift_at[], swift_ticking[], swift_clock[];
/* In: the call's number in rax and its arguments; out: as the system call leaves things. */
__asm__(".pushsection .rodata\n.balign 16\nswift:\n"
        " push %r9\n push %rax\n mov swift_cookie(%rip), %r9\n syscall\n pop %rcx\n pop %r9\n"
        " test %rax, %rax\n jne 9f\n"
        " push %rbx\n push %rbp\n push %rdi\n push %rsi\n push %rdx\n push %r8\n push %r9\n push %r10\n"
        " sub $48, %rsp\n movq $0, 16(%rsp)\n"
        /* rbx: the first of ebp times, each seconds and nanoseconds in 16 bytes */
        " mov $3, %ebp\n mov $0x2, %r9d\n lea 72(%rsi), %rbx\n cmp $6, %ecx\n jbe 6f\n"
        " lea 72(%rdx), %rbx\n cmp $262, %ecx\n je 6f\n"
        " mov $4, %ebp\n mov $0xc, %r9d\n lea 64(%r8), %rbx\n movzwl -36(%rbx), %eax\n jmp 7f\n"
        "6: mov -48(%rbx), %eax\n"
        /* at 32(%rsp): by bits, at which of ebp's values only the kernel sets that time */
        "7: and $0xf000, %eax\n cmp $0x8000, %eax\n je 7f\n cmp $0x4000, %eax\n je 7f\n"
        " cmp $0xa000, %eax\n je 7f\n mov $0x1e, %r9d\n7: mov %r9, 32(%rsp)\n"
        "1: mov (%rbx), %rax\n mov $9000000000, %rcx\n cmp %rcx, %rax\n jg 8f\n"
        " neg %rcx\n cmp %rcx, %rax\n jl 8f\n" /* as nanoseconds too much for 64 bits */
        " imul $1000000000, %rax, %rax\n add 8(%rbx), %rax\n cmp swift_since(%rip), %rax\n jge 6f\n"
        " cmp swift_at(%rip), %rax\n jle 8f\n mov 32(%rsp), %ecx\n bt %ebp, %ecx\n jnc 8f\n"
        " mov swift_since(%rip), %rax\n6:\n"
        /* the real now and a second, asked of the kernel's own code, once */
        " cmpq $0, 16(%rsp)\n jne 2f\n"
        " mov %rax, 24(%rsp)\n xor %edi, %edi\n mov %rsp, %rsi\n call *swift_clock(%rip)\n"
        " mov (%rsp), %rdx\n inc %rdx\n imul $1000000000, %rdx, %rdx\n add 8(%rsp), %rdx\n"
        " mov %rdx, 16(%rsp)\n mov 24(%rsp), %rax\n"
        "2: cmp 16(%rsp), %rax\n jg 8f\n sub swift_real0(%rip), %rax\n"
        " cmpq $0, swift_ticking(%rip)\n jne 3f\n"
        " sar $16, %rax\n mov $4000000000, %rcx\n sub %rcx, %rax\n jmp 4f\n"
        "3: xor %ecx, %ecx\n test %rax, %rax\n cmovs %rcx, %rax\n"
        "4: add swift_at(%rip), %rax\n cqo\n mov $1000000000, %ecx\n idiv %rcx\n"
        " test %rdx, %rdx\n jns 5f\n add %rcx, %rdx\n dec %rax\n"
        "5: mov %rax, (%rbx)\n mov %rdx, 8(%rbx)\n"
        "8: add $16, %rbx\n dec %ebp\n jne 1b\n"
        " add $48, %rsp\n pop %r10\n pop %r9\n pop %r8\n pop %rdx\n pop %rsi\n pop %rdi\n pop %rbp\n"
        " pop %rbx\n xor %eax, %eax\n9: ret\n"
        ".balign 8\nswift_cookie: .quad 0\nswift_since: .quad 0\n"
        "swift_real0: .quad 0\nswift_at: .quad 0\nswift_ticking: .quad 0\nswift_clock: .quad 0\n"
        "swift_end:\n.org swift + 448\n.popsection\n"); /* what TAIL has room for, or it is no assembly */

#define BEFORE_IT_PAYS 3
#define WHEN_UNKNOWN 32 /* not seen to start: in the loader still, or another one's child */
#define SITE 7   /* mov $nr, %eax; syscall */
#define THUNK 32 /* one for each site that was met */
#define THUNKS 4
#define TAIL 640 /* the code, then the thunks; ends where the mapping ends */

static struct {
    pid_t tid;
    uint32_t count;
    uint64_t vdso_at; /* 0: not known */
} asked_before[1024];

static uint32_t slot_of(pid_t tid) {
    uint32_t slot = (uint32_t)tid % (sizeof asked_before / sizeof *asked_before);
    if (asked_before[slot].tid != tid) {
        memset(&asked_before[slot], 0, sizeof *asked_before);
        asked_before[slot].tid = tid;
    }
    return slot;
}

void swift_forget(pid_t tid, uint64_t vdso_at) {
    uint32_t slot = slot_of(tid);
    asked_before[slot].count = 0;
    asked_before[slot].vdso_at = vdso_at;
}

/* Another thread could be in the middle of what is written. */
static int alone(pid_t tid) {
    char path[48];
    struct stat found;
    put_text(put_number(put_text(path, "/proc/"), tid), "/task");
    return !stat(path, &found) && found.st_nlink == 3;
}

/* The end of the mapping, if it is of a file and executable and not writable. Since Linux 6.11 the
 * kernel can be asked; before, there is the list. */
static uint64_t mapping_end(pid_t tid, uint64_t address) {
    static char text[64 * 1024];
    struct procmap_query query = {.size = sizeof query, .query_addr = address};
    int fd = open_proc(tid, "maps", O_RDONLY);
    if (fd < 0) return 0;
    int known = !ioctl(fd, PROCMAP_QUERY, &query);
    close(fd);
    if (known) return query.vma_flags == PROCMAP_READABLE_EXECUTABLE && query.inode ? query.vma_end : 0;
    int n = read_proc(tid, "maps", text, sizeof text - 1);
    if (n <= 0) return 0;
    text[n] = 0;
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char *rest;
        uint64_t from = strtoull(line, &rest, 16), to = strtoull(rest + 1, &rest, 16);
        if (address < from || address >= to) continue;
        return !strncmp(rest, " r-xp", 5) && strchr(rest, '/') ? to : 0;
    }
    return 0;
}

/* The vDSO, once it is as it should be: the loader asks for files' times before that. */
static uint64_t vdso_of(pid_t tid) {
    uint64_t aux[128], at = asked_before[slot_of(tid)].vdso_at;
    uint8_t there[16];
    int n = at ? 0 : read_proc(tid, "auxv", aux, sizeof aux);
    for (int i = 0; i + 1 < n / 8 && aux[i]; i += 2)
        if (aux[i] == AT_SYSINFO_EHDR) at = aux[i + 1];
    if (!at || peek(tid, at + vdso.detour, there, sizeof there)) return 0;
    return memcmp(there, vdso.image + vdso.detour, sizeof there) ? 0 : at;
}

static void put(uint8_t *tail, const uint8_t *where, int64_t value) {
    memcpy(tail + (where - swift), &value, 8);
}

static void fill_in(uint8_t *tail, uint64_t vdso_at) {
    memcpy(tail, swift, (size_t)(swift_end - swift));
    put(tail, swift_cookie, (int64_t)settings.cookie);
    put(tail, swift_since, settings.since);
    put(tail, swift_real0, settings.real0);
    put(tail, swift_at, settings.at);
    put(tail, swift_ticking, settings.mode == TICKING);
    put(tail, swift_clock, (int64_t)(vdso_at + vdso.detour));
}

static void branch(uint8_t *at, uint8_t op, uint64_t from, uint64_t to) {
    int32_t by = (int32_t)(to - (from + 5));
    at[0] = op;
    memcpy(at + 1, &by, 4);
}

/* mov $nr, %eax; leave the red zone alone; call; jmp back */
static void write_thunk(uint8_t *at, uint64_t address, uint32_t nr, uint64_t code, uint64_t back) {
    at[0] = 0xb8;
    memcpy(at + 1, &nr, 4);
    memcpy(at + 5, "\x48\x8d\x64\x24\x80", 5);
    branch(at + 10, 0xe8, address + 10, code);
    memcpy(at + 15, "\x48\x8d\xa4\x24\x80\x00\x00\x00", 8);
    branch(at + 23, 0xe9, address + 23, back);
}

static int make_swift(pid_t tid, uint32_t nr, uint64_t behind) {
    uint8_t found[SITE], site[SITE] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05}, tail[TAIL];
    static const uint8_t zeros[TAIL];
    size_t code = (size_t)(swift_end - swift), thunks = TAIL - THUNKS * THUNK;
    memcpy(site + 1, &nr, 4);
    if (!vdso.detour || code > thunks - 64) return -1;
    if (peek(tid, behind - SITE, found, SITE) || memcmp(found, site, SITE) || !alone(tid)) return -1;
    uint64_t end = mapping_end(tid, behind), at = end - TAIL, vdso_at = vdso_of(tid);
    if (!end || !vdso_at || end - behind > 1U << 30 || behind > at || peek(tid, at, tail, TAIL)) return -1;
    size_t slot = thunks;
    /* 64 zeros more before it: text that ends in some of its own is not overwritten. */
    if (!memcmp(tail, zeros, TAIL)) fill_in(tail + 64, vdso_at);
    else if (memcmp(tail + 64, swift, (size_t)(swift_cookie - swift))) return -1;
    while (slot < TAIL && tail[slot]) slot += THUNK;
    if (slot == TAIL) return -1;
    write_thunk(tail + slot, at + slot, nr, at + 64, behind);
    branch(site, 0xe9, behind - SITE, at + slot);
    memcpy(site + 5, "\x66\x90", 2);
    int fd = open_proc(tid, "mem", O_RDWR);
    if (fd < 0) return -1;
    /* The jump last: until then nothing leads to the rest. */
    int bad = pwrite(fd, tail, TAIL, (off_t)at) != TAIL ||
              pwrite(fd, site, SITE, (off_t)(behind - SITE)) != SITE;
    close(fd);
    return bad ? -1 : 0;
}

void swift_consider(const struct seccomp_notif *asked) {
    uint32_t *count = &asked_before[slot_of((pid_t)asked->pid)].count;
    if (++*count % BEFORE_IT_PAYS) return;
    /* Rarely again for one that cannot: it may ask from elsewhere, or have become alone. */
    if (*count > BEFORE_IT_PAYS && *count != WHEN_UNKNOWN && *count % (BEFORE_IT_PAYS * 64)) return;
    if (*count < WHEN_UNKNOWN && !asked_before[slot_of((pid_t)asked->pid)].vdso_at) return;
    if (!make_swift((pid_t)asked->pid, (uint32_t)asked->data.nr, asked->data.instruction_pointer))
        *count = BEFORE_IT_PAYS - 1; /* its other ways of asking are soon seen */
}
#else
void swift_forget(pid_t tid, uint64_t vdso_at) { (void)tid, (void)vdso_at; }
void swift_consider(const struct seccomp_notif *asked) { (void)asked; }
#endif
