/* A delegate of TFLite that takes the operators it is told to, and computes nothing.
 *
 * Options: refuse=WORDS  it cannot be made, and says so
 *          take=N,N,...  numbers of the builtin operators it takes; none without it
 * Only the beginnings of TFLite's structs that are used here are declared.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int size; int data[]; } Ints;
typedef struct Context Context;
typedef struct Delegate Delegate;
typedef struct Node Node;

typedef struct {
  void *(*init)(Context *, const char *, size_t);
  void (*free)(Context *, void *);
  int (*prepare)(Context *, Node *);
  int (*invoke)(Context *, Node *);
  const char *(*profiling_string)(const Context *, const Node *);
  int32_t builtin_code;
  const char *custom_name;
  int version;
  void *unused[4];
} Registration;

struct Context {
  size_t tensors_size;
  int (*execution_plan)(Context *, Ints **);
  void *tensors, *impl, *resize_tensor, *report_error, *add_tensors;
  int (*node)(Context *, int, Node **, Registration **);
  int (*replace)(Context *, Registration, const Ints *, Delegate *);
};

struct Delegate {
  void *data;
  int (*prepare)(Context *, Delegate *);
  void *copy_from, *copy_to, *free_handle;
  int64_t flags;
  void *opaque;
};

static int nothing(Context *context, Node *node) { return 0; }

static int is_wanted(const char *list, int code) {
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
    if (atoi(at) == code) return 1;
  return 0;
}

static int prepare(Context *context, Delegate *self) {
  Ints *plan;
  if (context->execution_plan(context, &plan)) return 1;
  int size = plan->size, *taken = malloc((size + 1) * sizeof(int)), count = 0;
  int *order = malloc((size + 1) * sizeof(int));
  memcpy(order, plan->data, size * sizeof(int));
  for (int n = 0; n < size; n++) {
    Node *node;
    Registration *kind;
    if (context->node(context, order[n], &node, &kind)) return 1;
    if (is_wanted(self->data, kind->builtin_code)) taken[1 + count++] = order[n];
  }
  taken[0] = count;
  Registration own = {.prepare = nothing, .invoke = nothing, .custom_name = "Taker", .version = 1};
  int status = count ? context->replace(context, own, (Ints *)taken, self) : 0;
  free(order);
  free(taken);
  return status;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                        void (*report)(const char *)) {
  const char *take = "";
  for (size_t n = 0; n < count; n++) {
    if (!strcmp(keys[n], "take")) take = values[n];
    if (!strcmp(keys[n], "refuse")) {
      report(values[n]);
      return NULL;
    }
  }
  Delegate *made = calloc(1, sizeof(Delegate));
  made->data = strdup(take);
  made->prepare = prepare;
  return made;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) {
  if (!delegate) return;
  free(delegate->data);
  free(delegate);
}
