/* The C ABI of Muster's collectives (libmuster_coll.so). No torch, no C++ in the interface, usable
 * from any language.
 *
 * A group is N ranks of one generation that share an arena (a memfd made by the agent, handed over
 * by fd; one a generation). Results are identical on every rank and do not depend on arrival: a sum
 * is a fixed binary tree over the rank index,
 * ((r0+r1)+(r2+r3))…, so that canonical training is bitwise equal for 1, 2, 4, 8 ranks. 16-bit
 * types are accumulated in fp32. Every call carries (sequence, operation, type, count, root, site):
 * when ranks disagree, each gets MUSTER_COLL_MISMATCH and a message naming both sides, but for a
 * strict majority that agrees: its ranks get MUSTER_COLL_ABORTED with the same message, because the
 * fault is another one's. So does whoever waits for a rank that closed its group. Nothing hangs.
 * Abort is cooperative: muster_coll_abort (any process that holds the arena) makes every waiting
 * and later call return MUSTER_COLL_ABORTED.
 *
 * One thread per group. Buffers may lie anywhere; those from muster_coll_alloc lie in the arena and
 * are reduced without a copy.
 */
#ifndef MUSTER_COLL_H_
#define MUSTER_COLL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MUSTER_COLL_API __attribute__((visibility("default")))
#define MUSTER_COLL_ABI_VERSION 1

typedef struct muster_coll_group muster_coll_group;

typedef enum {
  MUSTER_COLL_OK = 0,
  MUSTER_COLL_INVALID = 1,  /* an argument is wrong; nothing was sent */
  MUSTER_COLL_MISMATCH = 2, /* ranks called different operations */
  MUSTER_COLL_ABORTED = 3,
  MUSTER_COLL_TIMEOUT = 4, /* a rank did not arrive in time; the message names it */
  MUSTER_COLL_EXHAUSTED = 5,
  MUSTER_COLL_BROKEN = 6 /* the group failed earlier; only close is left */
} muster_coll_status;

typedef enum {
  MUSTER_COLL_F32 = 0,
  MUSTER_COLL_F64 = 1,
  MUSTER_COLL_BF16 = 2,
  MUSTER_COLL_F16 = 3,
  MUSTER_COLL_I32 = 4,
  MUSTER_COLL_I64 = 5,
  MUSTER_COLL_U8 = 6
} muster_coll_type;

typedef enum { MUSTER_COLL_SUM = 0, MUSTER_COLL_MAX = 1, MUSTER_COLL_MIN = 2 } muster_coll_op;

typedef struct {
  uint32_t abi_version; /* MUSTER_COLL_ABI_VERSION */
  uint32_t rank;
  uint32_t world;
  int32_t arena_fd; /* from muster_coll_arena_create; mapped, the caller keeps the fd. -1 only
                       when world is 1 */
  uint64_t generation;
  uint64_t timeout_ns; /* a call that waits longer fails; 0 means 600 s */
} muster_coll_options;

/* Makes a sealed memfd for `world` ranks with `bytes_per_rank` for muster_coll_alloc (0: staging
 * only). Returns the fd, or -1 with errno. */
MUSTER_COLL_API int muster_coll_arena_create(uint32_t world, uint64_t bytes_per_rank,
                                             uint64_t generation);
/* Orders every rank of the arena to give up; needs no group. `reason` is copied (≤ 127 bytes).
 * Async-signal-safe. */
MUSTER_COLL_API muster_coll_status muster_coll_arena_abort(int arena_fd, const char* reason);

MUSTER_COLL_API muster_coll_status muster_coll_open(const muster_coll_options* options,
                                                    muster_coll_group** group);
MUSTER_COLL_API void muster_coll_close(muster_coll_group* group);

/* 64-byte aligned memory of this rank in the arena, zeroed, valid until close. NULL when it does
 * not fit. */
MUSTER_COLL_API void* muster_coll_alloc(muster_coll_group* group, size_t bytes);

/* In place: buffer[count] of every rank becomes the reduction; every rank may overwrite its buffer
 * when the call returns. */
MUSTER_COLL_API muster_coll_status muster_coll_all_reduce(muster_coll_group* group, void* buffer,
                                                          size_t count, muster_coll_type type,
                                                          muster_coll_op op, const char* site);
MUSTER_COLL_API muster_coll_status muster_coll_broadcast(muster_coll_group* group, void* buffer,
                                                         size_t count, muster_coll_type type,
                                                         uint32_t root, const char* site);
/* receive[world * count], rank r's part at r * count. */
MUSTER_COLL_API muster_coll_status muster_coll_all_gather(muster_coll_group* group,
                                                          const void* send, void* receive,
                                                          size_t count, muster_coll_type type,
                                                          const char* site);
MUSTER_COLL_API muster_coll_status muster_coll_barrier(muster_coll_group* group, const char* site);

/* Asynchronous all-reduce on a progress thread of the group, in the order of the calls; the buffer
 * belongs to the group until wait returns. At most 64 in flight. */
typedef struct {
  uint64_t ticket;
} muster_coll_handle;
MUSTER_COLL_API muster_coll_status muster_coll_all_reduce_start(muster_coll_group* group,
                                                                void* buffer, size_t count,
                                                                muster_coll_type type,
                                                                muster_coll_op op, const char* site,
                                                                muster_coll_handle* handle);
MUSTER_COLL_API muster_coll_status muster_coll_wait(muster_coll_group* group,
                                                    muster_coll_handle handle);

/* Collectives entered so far; the heartbeat publishes it. */
MUSTER_COLL_API uint64_t muster_coll_sequence(const muster_coll_group* group);
/* The last failure of this group in words, "" when there was none. Valid until the next call. */
MUSTER_COLL_API const char* muster_coll_message(const muster_coll_group* group);
/* Why the calling thread's last muster_coll_open failed. Valid until its next open. */
MUSTER_COLL_API const char* muster_coll_open_message(void);

#ifdef __cplusplus
}
#endif
#endif /* MUSTER_COLL_H_ */
