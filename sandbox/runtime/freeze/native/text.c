/* The few words and paths the supervisor writes, without malloc, stdio or a locale. */
#include "still.h"
#include <string.h>
#include <unistd.h>

char *put_text(char *at, const char *text) {
    size_t size = strlen(text);
    memcpy(at, text, size + 1);
    return at + size;
}

char *put_number(char *at, long number) {
    char digits[24];
    int n = 0;
    unsigned long rest = number < 0 ? 0UL - (unsigned long)number : (unsigned long)number;
    if (number < 0) *at++ = '-';
    do digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    while (n) *at++ = digits[--n];
    *at = 0;
    return at;
}

void say(const char *a, const char *b, long error) {
    char line[512], *end = put_text(line, "still: ");
    if (strlen(a) > 200) a = "(a long word)";
    if (strlen(b) > 200) b = "(a long word)";
    end = put_text(put_text(end, a), b);
    if (error) end = put_text(put_text(end, ": "), strerror((int)(error < 0 ? -error : error)));
    *end++ = '\n';
    if (write(2, line, (size_t)(end - line)) < 0) return;
}
