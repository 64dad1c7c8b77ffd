/* accelerate tells its ranks by variables what its words and its configuration say
 * (commands/launch.py and utils/launch.py of accelerate 1.x): a recipe gives them the same. What
 * it has no variable for is named. Only what was said is taken over: defaults that its launcher
 * adds are named once. */
#include "lib/recipe/launch_accelerate.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/launch_options.h"
#include "lib/recipe/launch_run.h"
#include "lib/recipe/launch_tables.h"
#include "lib/recipe/shell_vars.h"
#include "lib/recipe/yaml.h"

#define DEFAULT_FILE ".cache/huggingface/accelerate/default_config.yaml" /* below HOME */

#define DEEPSPEED "ACCELERATE_USE_DEEPSPEED"
#define FSDP "ACCELERATE_USE_FSDP"

/* A word of the launcher, or a key of the file, and the variable that a rank reads. needs: the one
 * without which its launcher does not set it; a rank reads some of them all the same. */
static const struct variable {
	const char *key, *name, *needs;
} variables[] = {
	{ "mixed_precision", "ACCELERATE_MIXED_PRECISION", NULL },
	{ "zero_stage", "ACCELERATE_DEEPSPEED_ZERO_STAGE", DEEPSPEED },
	{ "gradient_accumulation_steps", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS", DEEPSPEED },
	{ "gradient_clipping", "ACCELERATE_GRADIENT_CLIPPING", DEEPSPEED },
	{ "offload_optimizer_device", "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", DEEPSPEED },
	{ "offload_param_device", "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE", DEEPSPEED },
	{ "zero3_init_flag", "ACCELERATE_DEEPSPEED_ZERO3_INIT", DEEPSPEED },
	{ "zero3_save_16bit_model", "ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL", DEEPSPEED },
	{ "deepspeed_config_file", "ACCELERATE_DEEPSPEED_CONFIG_FILE", DEEPSPEED },
	{ "deepspeed_moe_layer_cls_names", "ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES", DEEPSPEED },
	{ "fsdp_version", "FSDP_VERSION", FSDP },
	{ "fsdp_sharding_strategy", "FSDP_SHARDING_STRATEGY", FSDP },
	{ "fsdp_reshard_after_forward", "FSDP_RESHARD_AFTER_FORWARD", FSDP },
	{ "fsdp_offload_params", "FSDP_OFFLOAD_PARAMS", FSDP },
	{ "fsdp_min_num_params", "FSDP_MIN_NUM_PARAMS", FSDP },
	{ "fsdp_auto_wrap_policy", "FSDP_AUTO_WRAP_POLICY", FSDP },
	{ "fsdp_transformer_layer_cls_to_wrap", "FSDP_TRANSFORMER_CLS_TO_WRAP", FSDP },
	{ "fsdp_backward_prefetch", "FSDP_BACKWARD_PREFETCH", FSDP },
	{ "fsdp_state_dict_type", "FSDP_STATE_DICT_TYPE", FSDP },
	{ "fsdp_forward_prefetch", "FSDP_FORWARD_PREFETCH", FSDP },
	{ "fsdp_use_orig_params", "FSDP_USE_ORIG_PARAMS", FSDP },
	{ "fsdp_cpu_ram_efficient_loading", "FSDP_CPU_RAM_EFFICIENT_LOADING", FSDP },
	{ "fsdp_sync_module_states", "FSDP_SYNC_MODULE_STATES", FSDP },
	{ "fsdp_activation_checkpointing", "FSDP_ACTIVATION_CHECKPOINTING", FSDP },
	{ "use_deepspeed", DEEPSPEED, NULL },
	{ "use_fsdp", FSDP, NULL },
};

/* Keys by which its launcher finds the ranks, or that say nothing to a rank on a GPU. */
#define PLACES \
	"compute_environment machine_rank main_process_ip main_process_port rdzv_backend " \
	"same_network main_training_function gpu_ids downcast_bf16 tpu_env tpu_use_cluster " \
	"tpu_use_sudo deepspeed_multinode_launcher deepspeed_hostfile enable_cpu_affinity"

static const struct variable *variable_of(const char *key, size_t n)
{
	for (size_t i = 0; i < ELEMENTSOF(variables); i++) {
		const char *want = variables[i].key;
		size_t k = 0;

		while (k < n && (key[k] == want[k] || (key[k] == '-' && want[k] == '_')))
			k++;
		if (k == n && !want[n])
			return &variables[i];
	}
	return NULL;
}

static struct launch_setting *setting_of(const struct launch_line *l, const char *name)
{
	for (size_t i = 0; i < l->n_settings; i++)
		if (mo_streq(l->settings[i].name, name))
			return &l->settings[i];
	return NULL;
}

static void tell(struct launch_line *l, const struct variable *v, const char *where,
		 const char *value)
{
	struct launch_setting *t = setting_of(l, v->name);

	if (!t) {
		t = MO_GROW(l->settings, l->n_settings);
		*t = (struct launch_setting){ .name = v->name, .needs = v->needs };
	}
	mo_str_set(&t->where, where);
	mo_str_set(&t->value, value);
}

/* A key of a section of the file: its launcher (1.x) takes it over a word of the line, too. */
static void tell_over(struct launch_line *l, const struct variable *v, const char *where,
		      const char *value)
{
	struct launch_setting *t = setting_of(l, v->name);

	if (t && t->where && t->where[0] == '-' && strcasecmp(t->value, value) != 0) {
		free(t->over);
		t->over = mo_printf("%s %s", t->where, t->value);
	}
	tell(l, v, where, value);
}

static bool is_false(const char *text)
{
	return !*text || strcasecmp(text, "false") == 0 || strcasecmp(text, "no") == 0 ||
	       strcasecmp(text, "null") == 0 || mo_streq(text, "~");
}

bool launch_accelerate_word(struct launch_line *l, const char *word, const char *value)
{
	const char *key = word + strspn(word, "-");
	const struct variable *v = variable_of(key, strlen(key));

	if (v)
		tell(l, v, word, value ? value : "true");
	return v;
}

/* Of the words, the first that says how ranks work together: what the file says of that then
 * counts for nothing. */
void launch_accelerate_type(struct launch_line *l, char *const *words, size_t n)
{
	static const struct {
		const char *names, *type;
	} types[] = {
		{ "--multi_gpu --multi-gpu", "MULTI_GPU" },
		{ "--use_deepspeed --use-deepspeed", "DEEPSPEED" },
		{ "--use_fsdp --use-fsdp", "FSDP" },
		{ "--use_megatron_lm --use-megatron-lm", "MEGATRON_LM" },
		{ "--tpu", "XLA" },
	};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ELEMENTSOF(types) && !l->accelerate_type; k++)
			if (launch_among(types[k].names, words[i], strlen(words[i])))
				l->accelerate_type = types[k].type;
}

static void take_number(struct launch_line *l, const char *key, const char *text)
{
	int64_t v;

	if (mo_parse_i64(text, 1, 1000000, &v) < 0)
		return;
	if (mo_streq(key, "num_processes") && l->total == MO_NONE)
		l->total = v;
	else if (mo_streq(key, "num_machines") && l->nodes == MO_NONE)
		l->nodes = v;
}

static void take_type(struct launch_line *l, const char *place, const char *text)
{
	static const struct {
		const char *type, *word;
	} types[] = { { "DEEPSPEED", "use_deepspeed" }, { "FSDP", "use_fsdp" } };

	if (l->accelerate_type) {
		if (!is_false(text) && !mo_streq(text, l->accelerate_type))
			launch_lose(l, place, text,
				    "a word of the line says another one, which accelerate takes");
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(types); i++)
		if (mo_streq(text, types[i].type)) {
			(void)launch_accelerate_word(l, types[i].word, NULL);
			return;
		}
	if (mo_streq(text, "NO") && l->total == MO_NONE)
		l->total = 1;
	else if (!is_false(text) && !mo_streq(text, "MULTI_GPU"))
		launch_lose(l, place, text, ACCELERATES);
}

static void take_key(struct launch_line *l, const char *file, const struct ynode *key,
		     const struct ynode *v, bool nested)
{
	_cleanup_(mo_freep) char *place =
		mo_printf("%s:%lld %s", file, (long long)key->line, key->text);
	const struct variable *var = variable_of(key->text, strlen(key->text));

	if (v->kind != YAML_SCALAR) {
		launch_lose(l, place, NULL, ACCELERATES);
	} else if (mo_streq(key->text, "num_processes") || mo_streq(key->text, "num_machines")) {
		take_number(l, key->text, v->text);
	} else if (mo_streq(key->text, "distributed_type")) {
		take_type(l, place, v->text);
	} else if (ynode_is_null(v) || ynode_is_empty(v) ||
		   launch_among(PLACES, key->text, strlen(key->text))) {
		return;
	} else if (var) {
		bool truth = v->plain && (strcasecmp(v->text, "true") == 0 ||
					  strcasecmp(v->text, "false") == 0);

		bool on = truth && strcasecmp(v->text, "true") == 0;
		const char *value = !truth ? v->text : on ? "true" : "false";

		if (nested)
			tell_over(l, var, place, value);
		else if (!setting_of(l, var->name))
			tell(l, var, place, value);
	} else if (!is_false(v->text)) {
		launch_lose(l, place, v->text, ACCELERATES);
	}
}

/* What of DeepSpeed the file itself says, by name: accelerate refuses it beside a file of
 * DeepSpeed. */
static void tell_fields(struct launch_line *l, const struct ynode *map)
{
	static const struct variable fields = { NULL, "ACCELERATE_CONFIG_DS_FIELDS", DEEPSPEED };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < map->n; i++)
		mo_buf_printf(&b, "%s%s", i ? "," : "", map->items[i].key->text);
	if (b.len)
		tell(l, &fields, NULL, b.data);
}

static bool read_file(struct launch_line *l, const char *file, const char *text)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(ynode_freep) struct ynode *root =
		yaml_load(text, strlen(text), "file of accelerate", &errors);

	if (!root || errors.n || root->kind != YAML_MAP)
		return false;
	for (size_t i = 0; i < root->n; i++) {
		const struct ynode *key = root->items[i].key, *v = root->items[i].value;

		if (v->kind != YAML_MAP) {
			take_key(l, file, key, v, false);
			continue;
		}
		if (mo_streq(key->text, "deepspeed_config"))
			tell_fields(l, v);
		for (size_t k = 0; k < v->n; k++)
			take_key(l, file, v->items[k].key, v->items[k].value, true);
	}
	return true;
}

static void read_config(struct run *r)
{
	struct launch_line *l = &r->best;
	const struct launch_world *w = r->world;
	struct shell_var *home = shell_var(&r->shell, "HOME", strlen("HOME"));
	bool given = l->accelerate_config;
	_cleanup_(mo_freep) char *own = home && home->n
						? mo_printf("%s/" DEFAULT_FILE, home->words[0])
						: NULL,
				 *whole = NULL, *text = NULL;
	const char *file = given ? l->accelerate_config : own, *dir = l->dir;

	if (!file)
		return;
	dir = dir ? dir : w ? w->dir : NULL;
	whole = file[0] == '/' || !dir ? mo_strdup(file) : mo_printf("%s/%s", dir, file);
	text = w && w->read && !shell_unknown(whole) ? w->read(w->arg, whole) : NULL;
	bool read = text && read_file(l, file, text);

	if (text ? !read : given)
		launch_lose(l, "--config_file", file,
			    text ? "it is no YAML that can be read here"
				 : "it cannot be read here, and what it says is not in the recipe");
	char *used = read ? mo_strdup(file) : NULL;
	free(l->accelerate_config);
	l->accelerate_config = used;
}

static bool is_on(const struct launch_line *l, const char *name)
{
	const struct launch_setting *t = setting_of(l, name);

	return t && strcasecmp(t->value, "true") == 0;
}

static void settle(struct launch_line *l, const struct launch_setting *t)
{
	if (t->needs && !is_on(l, t->needs)) {
		if (t->where)
			launch_lose(l, t->where, t->value,
				    mo_streq(t->needs, FSDP)
					    ? "accelerate tells it to ranks of FSDP alone"
					    : "accelerate tells it to ranks of DeepSpeed alone");
		return;
	}
	launch_env(l, t->name, strlen(t->name), t->value);
	if (t->over) {
		_cleanup_(mo_freep) char *why =
			mo_printf("accelerate 1.x takes %s %s over it, and so does env: write the "
				  "one that you mean",
				  t->where, t->value);
		launch_lose(l, t->over, NULL, why);
	}
}

void launch_accelerate_config(struct run *r)
{
	struct launch_line *l = &r->best;

	if (!l->launcher || !mo_streq(l->launcher, launch_accelerate.name))
		return;
	read_config(r);
	for (size_t i = 0; i < l->n_settings; i++)
		settle(l, &l->settings[i]);
}
