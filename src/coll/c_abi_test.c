/* A C11 program against the shared library alone: what another language sees. */
#include "coll/muster_coll.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int Rank(int fd, uint32_t rank) {
  muster_coll_options options;
  memset(&options, 0, sizeof options);
  options.abi_version = MUSTER_COLL_ABI_VERSION;
  options.rank = rank;
  options.world = 2;
  options.arena_fd = fd;
  options.generation = 3;
  muster_coll_group* group = NULL;
  if (muster_coll_open(&options, &group) != MUSTER_COLL_OK) {
    fprintf(stderr, "%s\n", muster_coll_open_message());
    return 1;
  }
  float values[3] = {1.0f, 2.0f, (float)rank};
  if (muster_coll_all_reduce(group, values, 3, MUSTER_COLL_F32, MUSTER_COLL_SUM, "c") !=
      MUSTER_COLL_OK) {
    fprintf(stderr, "%s\n", muster_coll_message(group));
    return 2;
  }
  const int right = values[0] == 2.0f && values[1] == 4.0f && values[2] == 1.0f;
  muster_coll_close(group);
  return right ? 0 : 3;
}

int main(void) {
  const int fd = muster_coll_arena_create(2, 0, 3);
  if (fd < 0) return 10;
  const pid_t child = fork();
  if (child < 0) return 11;
  if (child == 0) _exit(Rank(fd, 1));
  const int mine = Rank(fd, 0);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 12;
  return mine != 0 ? mine : (WIFEXITED(status) ? WEXITSTATUS(status) : 13);
}
