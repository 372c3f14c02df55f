/* A long link between two tap devices, where the kernel has no netem.

     wan TAP TAP DELAY_NS RATE_BITS QUEUE_BYTES

   The taps are file descriptors, opened with IFF_VNET_HDR. What is read from one is written to the
   other when it has passed a link of that rate and one-way delay; each direction has a link and a
   thread of its own. As on Ethernet each packet costs 24 bytes more than its
   frame. What finds QUEUE_BYTES waiting for the link is lost. With TSO a frame may be many
   packets: it travels as a whole, and costs what its packets cost. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    WIRE = 24,          /* preamble 8, checksum 4, gap 12 */
    LARGEST = 65536 + sizeof(struct virtio_net_hdr) + 14,
    ALIGN = 16,
    BATCH = 64,         /* frames read before the next look at what is due */
};
static const int64_t SECOND = 1000000000;

struct record {         /* its frame follows it */
    int64_t due;        /* when its last bit arrives */
    uint32_t length;
    uint32_t size;      /* of the record with its frame */
};

struct direction {
    int from, to;
    char *ring;         /* records begin below size; the last may end LARGEST beyond */
    size_t size, head, tail, held;
    int64_t free_at;    /* when the link has sent all that it was given */
};

static int64_t delay, rate, queue;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static int64_t wire_bytes(const struct virtio_net_hdr *head, int64_t frame)
{
    if (head->gso_type == VIRTIO_NET_HDR_GSO_NONE || head->gso_size == 0)
        return frame + WIRE;
    /* hdr_len is a hint, and often too big. The checksum begins with TCP's header, which tells
       its own length, in words of 4 bytes, in the upper half of its byte 12. */
    const uint8_t *bytes = (const uint8_t *)(head + 1);
    int64_t headers = head->csum_start + (bytes[head->csum_start + 12] >> 4) * 4;
    int64_t packets = (frame - headers + head->gso_size - 1) / head->gso_size;
    return frame + (packets - 1) * headers + packets * WIRE;
}

/* Takes one frame from the tap. Returns 0 if there is none. */
static int take(struct direction *d)
{
    struct record *r = (struct record *)(d->ring + d->head);
    struct virtio_net_hdr *frame = (struct virtio_net_hdr *)(r + 1);
    ssize_t length = read(d->from, frame, LARGEST);
    if (length < (ssize_t)sizeof *frame)
        return 0;
    int64_t cost = wire_bytes(frame, length - (ssize_t)sizeof *frame);
    int64_t time = now();
    if (d->free_at < time)
        d->free_at = time;
    int64_t waiting = (d->free_at - time) / 8 * (rate / 1000) / (SECOND / 1000);
    if (waiting + cost > queue || d->held + 2 * (sizeof *r + LARGEST + ALIGN) > d->size)
        return 1; /* lost */
    d->free_at += cost * 8 * SECOND / rate;
    r->due = d->free_at + delay;
    r->length = (uint32_t)length;
    r->size = (uint32_t)((sizeof *r + (size_t)length + ALIGN - 1) / ALIGN * ALIGN);
    d->held += r->size;
    d->head += r->size;
    if (d->head >= d->size)
        d->head = 0;
    return 1;
}

/* Writes all that is due. Returns when the next frame is, or 0 if none is under way. */
static int64_t deliver(struct direction *d)
{
    while (d->held > 0) {
        struct record *r = (struct record *)(d->ring + d->tail);
        if (r->due > now())
            return r->due;
        if (write(d->to, r + 1, r->length) < 0 && errno == EBADFD)
            exit(1); /* the tap is gone; any other error is a frame that its end did not want */
        d->held -= r->size;
        d->tail += r->size;
        if (d->tail >= d->size)
            d->tail = 0;
    }
    return 0;
}

static void *carry(void *argument)
{
    struct direction *d = argument;
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        int64_t next = deliver(d);
        int more = BATCH;
        while (more > 0 && take(d))
            more--;
        if (more == 0)
            continue;
        if (next == 0 && d->held > 0)
            next = ((struct record *)(d->ring + d->tail))->due;
        int64_t wait = next - now();
        if (next != 0 && wait <= 0)
            continue;
        struct timespec pause = {wait / SECOND, wait % SECOND};
        struct pollfd tap = {.fd = d->from, .events = POLLIN};
        if (ppoll(&tap, 1, next ? &pause : NULL, NULL) > 0 && (tap.revents & (POLLERR | POLLHUP)))
            exit(1); /* the tap is gone */
    }
    return NULL;
}

int main(int count, char **words)
{
    if (count != 6)
        return 2;
    int taps[2] = {atoi(words[1]), atoi(words[2])};
    delay = atoll(words[3]);
    rate = atoll(words[4]);
    queue = atoll(words[5]);
    if (delay < 0 || rate < 1000 || queue < LARGEST)
        return 2;
    static struct direction directions[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        struct direction *d = &directions[i];
        d->from = taps[i];
        d->to = taps[1 - i];
        if (fcntl(d->from, F_SETFL, O_NONBLOCK))
            return 1;
        /* All that can be on the link and in its queue, twice: a small frame has a big record. */
        d->size = 2 * (size_t)(queue + delay / 1000 * (rate / 1000) / 8000) + 4 * LARGEST;
        d->ring = mmap(NULL, d->size + 2 * LARGEST, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (d->ring == MAP_FAILED || pthread_create(&threads[i], NULL, carry, d)) {
            perror("wan");
            return 1;
        }
    }
    pthread_join(threads[0], NULL);
    return 1;
}
