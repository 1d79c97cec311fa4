/* The vDSO, rewritten. The kernel maps into every process functions that read the clock without a
 * system call. A process has a private copy of those pages the moment somebody writes to them, so
 * the supervisor overwrites them once per exec, and a clock read then costs what it always did.
 *
 * The blob lies in what was gettimeofday, or in the zeros behind the vDSO's section headers. The entry of each time function
 * becomes a jump into it. The first instructions of clock_gettime, displaced by that jump, move
 * into the blob's `detour`, so every other clock keeps the kernel's own code. */
#include "still.h"
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct vdso vdso;

#if defined(__x86_64__)
#include <sys/syscall.h>

extern const uint8_t blob[], blob_end[], blob_clock_gettime[], blob_gettimeofday[], blob_time[],
    blob_getrandom[], blob_detour[], blob_sec[], blob_nsec[], blob_usec[], blob_mode[];
__asm__(".pushsection .rodata\n.balign 16\nblob:\n"
        /* clocks 0 realtime, 5 coarse, 8 alarm, 11 TAI are ours; an unsigned compare sends the
         * negative ones (of other processes, and of devices) the old way */
        "blob_clock_gettime: endbr64\n cmp $11, %edi\n ja blob_detour\n"
        " mov $0x921, %eax\n bt %edi, %eax\n jnc blob_detour\n"
        " cmpl $1, blob_mode(%rip)\n ja 1f\n je 2f\n"
        /* ticking: the kernel's monotonic clock, and an offset */
        "3: push %rsi\n mov $1, %edi\n call blob_detour\n pop %rsi\n test %eax, %eax\n jne 4f\n"
        " mov (%rsi), %rdx\n mov 8(%rsi), %rax\n add blob_sec(%rip), %rdx\n"
        " add blob_nsec(%rip), %rax\n cmp $1000000000, %rax\n jb 5f\n"
        " sub $1000000000, %rax\n inc %rdx\n"
        "5: mov %rdx, (%rsi)\n mov %rax, 8(%rsi)\n xor %eax, %eax\n4: ret\n"
        /* fixed */
        "2: mov blob_sec(%rip), %rax\n mov %rax, (%rsi)\n mov blob_nsec(%rip), %rax\n"
        " mov %rax, 8(%rsi)\n xor %eax, %eax\n ret\n"
        /* step: the supervisor counts */
        "1: mov $228, %eax\n syscall\n ret\n"
        "blob_gettimeofday: endbr64\n cmpl $1, blob_mode(%rip)\n ja 6f\n"
        " test %rsi, %rsi\n je 7f\n movq $0, (%rsi)\n7: test %rdi, %rdi\n je 8f\n"
        " cmpl $1, blob_mode(%rip)\n je 9f\n"
        " push %rdi\n mov %rdi, %rsi\n call 3b\n pop %rdi\n test %eax, %eax\n jne 4b\n"
        " mov 8(%rdi), %rax\n xor %edx, %edx\n mov $1000, %ecx\n div %rcx\n mov %rax, 8(%rdi)\n"
        "8: xor %eax, %eax\n ret\n"
        "9: mov blob_sec(%rip), %rax\n mov %rax, (%rdi)\n mov blob_usec(%rip), %rax\n"
        " mov %rax, 8(%rdi)\n xor %eax, %eax\n ret\n"
        "6: mov $96, %eax\n syscall\n ret\n"
        "blob_time: endbr64\n cmpl $1, blob_mode(%rip)\n ja 6f\n je 7f\n"
        " push %rdi\n sub $16, %rsp\n mov %rsp, %rsi\n call 3b\n mov (%rsp), %rax\n"
        " add $16, %rsp\n pop %rdi\n jmp 8f\n"
        "7: mov blob_sec(%rip), %rax\n8: test %rdi, %rdi\n je 9f\n mov %rax, (%rdi)\n9: ret\n"
        "6: mov $201, %eax\n syscall\n ret\n"
        /* r8 = -1 asks for the size of the caller's state: then there is none, and libc uses the
         * system call by itself */
        "blob_getrandom: endbr64\n cmp $-1, %r8\n je 6f\n mov $318, %eax\n syscall\n ret\n"
        "6: mov $-38, %rax\n ret\n"
        ".balign 16\nblob_detour: .fill 40, 1, 0xcc\n"
        ".balign 8\nblob_sec: .quad 0\nblob_nsec: .quad 0\nblob_usec: .quad 0\nblob_mode: .quad 0\n"
        "blob_end:\n.popsection\n");

/* The length of an instruction that means the same elsewhere; 0 for one we do not know. */
static size_t movable(const uint8_t *p) {
    if (p[0] == 0xf3 && p[1] == 0x0f && p[2] == 0x1e && p[3] == 0xfa) return 4; /* endbr64 */
    if ((p[0] & 0xf8) == 0x50 || p[0] == 0x90) return 1;                        /* push, nop */
    if (p[0] == 0x41 && (p[1] & 0xf8) == 0x50) return 2;
    int wide = p[0] == 0x48 || p[0] == 0x49 || p[0] == 0x4c || p[0] == 0x4d;
    int other = p[0] == 0x41 || p[0] == 0x44 || p[0] == 0x45;
    const uint8_t *op = p + (wide || other); /* after a REX prefix */
    size_t prefix = (size_t)(op - p);
    int registers = op[1] >= 0xc0;
    if (registers && (op[0] == 0x89 || op[0] == 0x8b || op[0] == 0x31 || op[0] == 0x85))
        return prefix + 2; /* mov, xor, test */
    if (registers && op[0] == 0x83) return prefix + 3; /* and, sub, cmp with a small number */
    if (registers && op[0] == 0x81) return prefix + 6;
    if (!wide && (op[0] & 0xf8) == 0xb8) return prefix + 5; /* mov a number */
    if (wide && op[0] == 0x8d && (op[1] & 0xc7) == 0x44 && op[2] == 0x24) return 5; /* lea n(%rsp) */
    return 0;
}

struct names {
    uint64_t clock_gettime, gettimeofday, time, getrandom, gettimeofday_size;
};

static uint32_t gnu_hash_count(const uint32_t *table) {
    uint32_t buckets = table[0], first = table[1], most = 0;
    const uint32_t *bucket = table + 4 + table[2] * 2, *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > most) most = bucket[i];
    if (most < first) return 0;
    while (!(chain[most - first] & 1)) most++;
    return most + 1;
}

static void find_names(const uint8_t *base, struct names *names) {
    const Elf64_Ehdr *head = (const void *)base;
    const Elf64_Phdr *part = (const void *)(base + head->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    for (int i = 0; i < head->e_phnum; i++)
        if (part[i].p_type == PT_DYNAMIC) dynamic = (const void *)(base + part[i].p_offset);
    const Elf64_Sym *symbol = NULL;
    const char *text = NULL;
    uint32_t count = 0;
    for (; dynamic && dynamic->d_tag; dynamic++) {
        const void *at = base + dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_SYMTAB) symbol = at;
        if (dynamic->d_tag == DT_STRTAB) text = at;
        if (dynamic->d_tag == DT_HASH) count = ((const uint32_t *)at)[1];
        if (dynamic->d_tag == DT_GNU_HASH && !count) count = gnu_hash_count(at);
    }
    for (uint32_t i = 0; symbol && text && i < count; i++) {
        const char *name = text + symbol[i].st_name;
        if (!strcmp(name, "__vdso_clock_gettime")) names->clock_gettime = symbol[i].st_value;
        if (!strcmp(name, "__vdso_gettimeofday"))
            names->gettimeofday = symbol[i].st_value, names->gettimeofday_size = symbol[i].st_size;
        if (!strcmp(name, "__vdso_time")) names->time = symbol[i].st_value;
        if (!strcmp(name, "__vdso_getrandom")) names->getrandom = symbol[i].st_value;
    }
}

static void jump(struct vdso *out, uint64_t from, uint64_t to) {
    int32_t by = (int32_t)(to - (from + 5));
    out->image[from] = 0xe9;
    memcpy(out->image + from + 1, &by, 4);
}

/* mov $nr, %eax; syscall; ret — for a vDSO whose code we cannot keep: right, but slow. */
static void stub(struct vdso *out, uint64_t at, uint32_t nr) {
    uint8_t code[] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};
    memcpy(code + 1, &nr, 4);
    memcpy(out->image + at, code, sizeof code);
}

static uint64_t room_for(const struct vdso *out, size_t size, uint64_t headers, uint64_t behind) {
    uint64_t at = (behind + 15) & ~15ULL;
    size_t zeros = 0;
    while (at + zeros < out->size && zeros < size && !out->image[at + zeros]) zeros++;
    if (zeros == size) return at;
    at = (headers + 15) & ~15ULL; /* the section headers themselves: no loader reads them */
    return headers && at + size <= behind ? at : 0;
}

/* What gettimeofday was, where that is enough and next to the rest: each page that is written to
 * is one more to be copied, in every exec. */
static uint64_t room_in_function(const struct names *names, size_t size) {
    uint64_t at = (names->gettimeofday + 5 + 15) & ~15ULL, end = names->gettimeofday + names->gettimeofday_size;
    int near = names->gettimeofday >> 12 == names->clock_gettime >> 12 && (at + size - 1) >> 12 == at >> 12;
    return names->gettimeofday && near && at + size <= end ? at : 0;
}

static void find_changes(struct vdso *out, const uint8_t *base) {
    out->from = 0, out->to = out->size;
    while (out->from < out->to && out->image[out->from] == base[out->from]) out->from++;
    while (out->to > out->from && out->image[out->to - 1] == base[out->to - 1]) out->to--;
}

static void put(struct vdso *out, uint64_t at, const uint8_t *where, int64_t value) {
    memcpy(out->image + at + (where - blob), &value, 8);
}

static void place_blob(struct vdso *out, uint64_t at, const struct names *names, size_t displaced) {
    const uint8_t *entry = out->image + names->clock_gettime;
    uint64_t detour = at + (uint64_t)(blob_detour - blob);
    memcpy(out->image + at, blob, (size_t)(blob_end - blob));
    memcpy(out->image + detour, entry, displaced);
    jump(out, detour + displaced, names->clock_gettime + displaced);
    out->detour = detour;
    int64_t from = settings.mode == TICKING ? settings.at - settings.mono0 : settings.at;
    int64_t sec = from / NANO, nsec = from % NANO;
    if (nsec < 0) nsec += NANO, sec--;
    put(out, at, blob_sec, sec);
    put(out, at, blob_nsec, nsec);
    put(out, at, blob_usec, nsec / 1000);
    put(out, at, blob_mode, settings.mode);
    jump(out, names->clock_gettime, at);
    if (names->gettimeofday) jump(out, names->gettimeofday, at + (uint64_t)(blob_gettimeofday - blob));
    if (names->time) jump(out, names->time, at + (uint64_t)(blob_time - blob));
    if (names->getrandom && settings.seeded)
        jump(out, names->getrandom, at + (uint64_t)(blob_getrandom - blob));
}

int vdso_prepare(struct vdso *out) {
    const uint8_t *base = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    out->size = out->detour = 0;
    if (!base) return 0;
    const Elf64_Ehdr *head = (const void *)base;
    uint64_t behind = head->e_shoff + (uint64_t)head->e_shnum * head->e_shentsize;
    size_t page = (size_t)getauxval(AT_PAGESZ);
    out->size = (behind + page - 1) & ~(page - 1);
    if (!behind || out->size > sizeof out->image) return -ENOTSUP;
    memcpy(out->image, base, out->size);
    struct names names = {0};
    find_names(base, &names);
    if (!names.clock_gettime) return -ENOTSUP;
    size_t displaced = 0, more;
    while (displaced < 5 && (more = movable(base + names.clock_gettime + displaced))) displaced += more;
    size_t size = (size_t)(blob_end - blob);
    uint64_t at = room_in_function(&names, size);
    if (!at) at = room_for(out, size, head->e_shoff, behind);
    if (at && displaced >= 5) {
        place_blob(out, at, &names, displaced);
        find_changes(out, base);
        return 0;
    }
    stub(out, names.clock_gettime, SYS_clock_gettime);
    if (names.gettimeofday) stub(out, names.gettimeofday, SYS_gettimeofday);
    if (names.time) stub(out, names.time, SYS_time);
    /* mov $-ENOSYS, %rax; ret */
    if (names.getrandom && settings.seeded)
        memcpy(out->image + names.getrandom, "\x48\xc7\xc0\xda\xff\xff\xff\xc3", 8);
    find_changes(out, base);
    return 0;
}
#else
/* aarch64 has neither arch_prctl, which tells of every exec, nor a second call each libc makes. */
int vdso_prepare(struct vdso *out) {
    out->size = 0;
    return -ENOSYS;
}
#endif
