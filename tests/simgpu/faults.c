/* faults.c - what the simulated GPU does wrong, and as which CUPTI it behaves: SIMGPU_FAULTS. */
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>

static struct sim_faults faults = { .layout = SIM_13_0,
#define SIM_FAULT_DEFAULT(name, value, help) .name = value,
				    SIM_FAULTS(SIM_FAULT_DEFAULT)
#undef SIM_FAULT_DEFAULT
};

static const char *const layout_names[SIM_LAYOUT_MAX] = { "11.8", "12.0", "12.8", "13.0", "13.3" };

/* A number, or a time in ns when it has a unit; SIZE_MAX-like nonsense is not caught. */
static bool parse_value(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = {
		{ "", 1 },
		{ "us", GT_NSEC_PER_USEC },
		{ "ms", GT_NSEC_PER_MSEC },
		{ "s", GT_NSEC_PER_SEC },
	};
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (end == text)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].name) == 0) {
			*ret = value * units[i].factor;
			return true;
		}
	}
	return false;
}

static bool parse_layout(const char *text)
{
	for (size_t i = 0; i < SIM_LAYOUT_MAX; i++) {
		if (strcmp(text, layout_names[i]) == 0) {
			faults.layout = (enum sim_layout)i;
			return true;
		}
	}
	return false;
}

static bool parse_item(const char *name, const char *value)
{
	static const struct {
		const char *name;
		uint64_t *value;
	} fields[] = {
#define SIM_FAULT_ROW(field, value, help) { #field, &faults.field },
		SIM_FAULTS(SIM_FAULT_ROW)
#undef SIM_FAULT_ROW
	};

	if (strcmp(name, "record_sizes") == 0)
		return parse_layout(value);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (strcmp(name, fields[i].name) == 0)
			return parse_value(value, fields[i].value);
	}
	return false;
}

static void parse(void)
{
	const char *text = getenv("SIMGPU_FAULTS");
	char *copy = text ? strdup(text) : NULL;
	char *save;

	if (!copy)
		return;
	for (char *item = strtok_r(copy, ", ", &save); item; item = strtok_r(NULL, ", ", &save)) {
		char *value = strchr(item, '=');

		if (value)
			*value++ = '\0';
		if (!parse_item(item, value ? value : "1")) {
			/* A test with a misspelt fault would test nothing. */
			fprintf(stderr, "simgpu: unknown fault or bad value: %s\n", item);
			abort();
		}
	}
	free(copy);
	if (faults.devices > SIM_DEVICES_MAX)
		faults.devices = SIM_DEVICES_MAX;
}

const struct sim_faults *simgpu_faults(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, parse);
	return &faults;
}
