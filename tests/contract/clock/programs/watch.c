/* watch WANTED PROGRAM…: for how long it runs, in monotonic time. */
#include "tell.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 3) return 2;
    double began = monotonic();
    pid_t child = fork();
    if (child == 0) {
        execvp(words[2], words + 2);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    printf("waited %.3f %s\n", monotonic() - began, words[1]);
    return 0;
}
