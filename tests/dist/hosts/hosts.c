#define _GNU_SOURCE /* setns, unshare, ppoll */
/* hosts.c - several hosts on one machine: a network namespace each, and a switch of a given speed and delay.
 *
 *     hosts COUNT MBIT_PER_SECOND DELAY_MS COMMAND...   runs COMMAND on the first; ends with its status, or
 *                                                       with 77 where namespaces or tunnels cannot be made
 *     hosts ... HOST COMMAND...                         under it, in place of ssh: runs COMMAND on HOST
 *
 * Hosts are 10.77.0.1, 10.77.0.2, ... and call themselves node0, node1, ...; $KOINE_HOSTS lists their addresses. The
 * switch is this program: each host's interface is a tunnel whose packets it forwards when their time has come. (`tc`
 * cannot delay packets with every kernel: netem is a module that many lack.) Where time namespaces exist, the hosts'
 * CLOCK_MONOTONIC differ by 1000 seconds. Needs root. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_HOSTS 16
#define MTU 9000
#define FIRST_NAMESPACE 100 /* their numbers as files: those of host h begin at + 3 h */
#define NAMESPACES 3
#define SKIPPED 77

typedef struct packet {
    struct packet *next;
    int64_t due; /* nanoseconds */
    ssize_t bytes;
    unsigned char data[MTU + 64];
} packet;

static struct {
    int tunnel;
    int64_t sent, received; /* when its cable is free again, in each direction */
    packet *first, *last;   /* on their way to it, in order */
} hosts[MOST_HOSTS];

static int count;
static double bytes_per_ns;
static int64_t delay;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* --- making hosts ------------------------------------------------------------------------------------------------- */

static bool skip(const char *what)
{
    fprintf(stderr, "hosts: %s: %s\n", what, strerror(errno));
    return false;
}

static bool set_address(int socket, struct ifreq *interface, unsigned long request, int last)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char text[32];
    snprintf(text, sizeof text, last < 0 ? "255.255.255.0" : "10.77.0.%d", last);
    inet_pton(AF_INET, text, &address.sin_addr);
    memcpy(&interface->ifr_addr, &address, sizeof address);
    return ioctl(socket, request, interface) == 0;
}

static bool bring_up(int socket, const char *name)
{
    struct ifreq interface = {0};
    snprintf(interface.ifr_name, IFNAMSIZ, "%s", name);
    interface.ifr_flags = IFF_UP | IFF_RUNNING;
    return ioctl(socket, SIOCSIFFLAGS, &interface) == 0;
}

static bool make_interface(int host)
{
    struct ifreq interface = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(interface.ifr_name, IFNAMSIZ, "eth0");
    const int tunnel = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), socket_ = socket(AF_INET, SOCK_DGRAM, 0);
    hosts[host].tunnel = tunnel;
    if (tunnel < 0 || socket_ < 0 || ioctl(tunnel, TUNSETIFF, &interface) != 0)
        return skip("a tunnel cannot be made");
    bool fine =
        set_address(socket_, &interface, SIOCSIFADDR, host + 1) && set_address(socket_, &interface, SIOCSIFNETMASK, -1);
    interface.ifr_mtu = MTU;
    fine = fine && ioctl(socket_, SIOCSIFMTU, &interface) == 0 && bring_up(socket_, "eth0") && bring_up(socket_, "lo");
    close(socket_);
    return fine || skip("an interface cannot be set up");
}

static const struct {
    const char *path;
    int kind;
} namespaces[NAMESPACES] = {
    {"/proc/self/ns/net", CLONE_NEWNET},
    {"/proc/self/ns/uts", CLONE_NEWUTS},
    {"/proc/self/ns/time_for_children", CLONE_NEWTIME},
};

static void make_clock(int host)
{
    FILE *offsets = unshare(CLONE_NEWTIME) == 0 ? fopen("/proc/self/timens_offsets", "w") : NULL;
    if (!offsets)
        return;
    fprintf(offsets, "monotonic %d 0\n", 1000 * (host + 1));
    fclose(offsets);
}

/* The process enters the namespaces it makes. */
static bool make_host(int host)
{
    char name[32];
    if (unshare(CLONE_NEWNET | CLONE_NEWUTS) != 0)
        return skip("namespaces cannot be made");
    const int length = snprintf(name, sizeof name, "node%d", host);
    if (sethostname(name, (size_t)length) != 0 || !make_interface(host))
        return skip(name);
    make_clock(host);
    for (int i = 0; i < NAMESPACES; i++) {
        const int file = open(namespaces[i].path, O_RDONLY);
        if (file >= 0 && dup2(file, FIRST_NAMESPACE + NAMESPACES * host + i) < 0)
            return skip(namespaces[i].path);
        close(file);
    }
    return true;
}

static bool enter(long process, int host)
{
    char path[64];
    for (int i = 0; i < NAMESPACES; i++) {
        snprintf(path, sizeof path, "/proc/%ld/fd/%d", process, FIRST_NAMESPACE + NAMESPACES * host + i);
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 && namespaces[i].kind == CLONE_NEWTIME)
            continue; /* this kernel has none */
        if (file < 0 || setns(file, namespaces[i].kind) != 0)
            return skip(path);
        close(file);
    }
    return true;
}

/* --- the switch --------------------------------------------------------------------------------------------------- */

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* To the cable of the sender, over the distance, from the cable of the receiver, without waiting for the packet's last
 * byte in between. */
static void take_packet(int from, packet *p)
{
    const int to = p->bytes >= 20 && p->data[0] >> 4 == 4 ? p->data[19] - 1 : -1;
    if (to < 0 || to >= count || to == from) {
        free(p);
        return;
    }
    const int64_t length = (int64_t)((double)p->bytes / bytes_per_ns);
    hosts[from].sent = later(hosts[from].sent, now()) + length;
    hosts[to].received = later(hosts[to].received + length, hosts[from].sent + delay);
    p->due = hosts[to].received;
    p->next = NULL;
    if (hosts[to].last)
        hosts[to].last->next = p;
    else
        hosts[to].first = p;
    hosts[to].last = p;
}

static void take_packets(int from)
{
    for (int i = 0; i < 16; i++) {
        packet *p = malloc(sizeof *p);
        if (!p)
            return;
        p->bytes = read(hosts[from].tunnel, p->data, sizeof p->data);
        if (p->bytes <= 0) {
            free(p);
            return;
        }
        take_packet(from, p);
    }
}

static void deliver(int to)
{
    const int64_t time = now();
    while (hosts[to].first && hosts[to].first->due <= time) {
        packet *p = hosts[to].first;
        hosts[to].first = p->next;
        if (!p->next)
            hosts[to].last = NULL;
        if (write(hosts[to].tunnel, p->data, (size_t)p->bytes) < 0 && errno != EIO && errno != EAGAIN)
            perror("hosts: a packet"); /* EIO: the interface is down */
        free(p);
    }
}

/* A sender that is ahead of its cable waits: its packets stay in its own queue. */
static void forward(void)
{
    const int64_t ahead = 2000000;
    struct pollfd polled[MOST_HOSTS];
    int64_t next = now() + 20000000;
    for (int h = 0; h < count; h++) {
        const bool waits = hosts[h].sent > now() + ahead;
        polled[h] = (struct pollfd){.fd = hosts[h].tunnel, .events = waits ? 0 : POLLIN};
        if (waits && hosts[h].sent - ahead < next)
            next = hosts[h].sent - ahead;
        if (hosts[h].first && hosts[h].first->due < next)
            next = hosts[h].first->due;
    }
    const int64_t left = later(next - now(), 0);
    const struct timespec until = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    ppoll(polled, (nfds_t)count, &until, NULL);
    for (int h = 0; h < count; h++) {
        if (polled[h].revents & POLLIN)
            take_packets(h);
        deliver(h);
    }
}

/* --- the program -------------------------------------------------------------------------------------------------- */

static int run_on_first(char **command)
{
    const pid_t own = getpid(), child = fork();
    if (child == 0) {
        char process[32], addresses[MOST_HOSTS * 16] = "";
        for (int h = 0; h < count; h++)
            snprintf(addresses + strlen(addresses), sizeof addresses - strlen(addresses), "%s10.77.0.%d", h ? "," : "",
                     h + 1);
        snprintf(process, sizeof process, "%ld", (long)own);
        setenv("KOINE_HOSTS_PROCESS", process, 1);
        setenv("KOINE_HOSTS", addresses, 1);
        if (enter(own, 0))
            execvp(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0)
        forward();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* As ssh: the words of the command are joined and given to a shell. Options before the host are not for us. */
static int run_on(const char *process, char **words)
{
    char command[65536] = "";
    int host = -1;
    for (; *words && host < 0; words++)
        if (sscanf(*words, "10.77.0.%d", &host) == 1)
            host--;
    for (; *words; words++)
        snprintf(command + strlen(command), sizeof command - strlen(command), "%s ", *words);
    if (host < 0 || !enter(strtol(process, NULL, 10), host))
        return 1;
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    return 127;
}

int main(int argc, char **argv)
{
    const char *process = getenv("KOINE_HOSTS_PROCESS");
    if (process)
        return run_on(process, argv + 1);
    if (argc < 5 || (count = atoi(argv[1])) < 1 || count > MOST_HOSTS || !(atof(argv[2]) > 0)) {
        fprintf(stderr, "usage: hosts COUNT MBIT_PER_SECOND DELAY_MS COMMAND...\n");
        return 2;
    }
    bytes_per_ns = atof(argv[2]) / 8e3;
    delay = (int64_t)(1e6 * atof(argv[3]));
    for (int h = 0; h < count; h++)
        if (!make_host(h))
            return SKIPPED;
    return run_on_first(argv + 4);
}
