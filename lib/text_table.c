/*
 * text_table.c - see text_table.h.
 */
#include "base.h"
#include "text_table.h"
#include "safe_text.h"

#include <stdarg.h>

#define GAP      2
#define NAME_MIN 12

void gt_text_cell(struct gt_text_table *table, const char *fmt, ...)
{
	char text[128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	gt_buf_append(&table->text, text, strlen(text) + 1);
	table->cells++;
}

void gt_text_cell_name(struct gt_text_table *table, struct gt_str name)
{
	gt_safe_put(&table->text, name);
	gt_buf_byte(&table->text, '\0');
	table->cells++;
}

void gt_text_cell_cut(struct gt_text_table *table, struct gt_str name, const char *end,
		      size_t width)
{
	struct gt_buf safe = { 0 };

	gt_safe_put(&safe, name);
	gt_safe_put_cut(&table->text, gt_buf_str(&safe), gt_sub(width, strlen(end)));
	gt_buf_text(&table->text, end);
	gt_buf_byte(&table->text, '\0');
	table->cells++;
	table->text.failed |= safe.failed;
	gt_buf_release(&safe);
}

static struct gt_str next_cell(const char **at)
{
	struct gt_str cell = gt_str_of(*at);

	*at += cell.len + 1;
	return cell;
}

static void measure(const struct gt_text_table *table, size_t *widths)
{
	const char *at = table->text.data;

	for (size_t i = 0; i < table->columns; i++)
		widths[i] = strlen(table->titles[i]);
	for (size_t i = 0; i < table->cells; i++) {
		size_t *width = &widths[i % table->columns];
		struct gt_str cell = next_cell(&at);

		*width = GT_MAX(*width, gt_safe_width(cell));
	}
}

/* One cell; the last of a row is cut, and ends the line. */
static void put_cell(const struct gt_text_table *table, size_t column, struct gt_str cell,
		     size_t width, struct gt_buf *out)
{
	gt_buf_fill(out, ' ', column ? GAP : 0);
	if (column + 1 == table->columns) {
		gt_safe_put_cut(out, cell, width);
		gt_buf_byte(out, '\n');
	} else {
		gt_buf_fill(out, ' ', width - gt_safe_width(cell));
		gt_buf_append(out, cell.ptr, cell.len);
	}
}

void gt_text_table_print(struct gt_text_table *table, size_t width, struct gt_buf *out)
{
	size_t widths[GT_TEXT_COLUMNS_MAX];
	const char *at = table->text.data;
	size_t used = 0;

	if (table->text.failed) {
		out->failed = true;
		return;
	}
	measure(table, widths);
	for (size_t i = 0; i + 1 < table->columns; i++)
		used += widths[i] + GAP;
	widths[table->columns - 1] = width > used + NAME_MIN ? width - used : NAME_MIN;
	for (size_t i = 0; i < table->columns; i++)
		put_cell(table, i, gt_str_of(table->titles[i]), widths[i], out);
	for (size_t i = 0; i < table->cells; i++)
		put_cell(table, i % table->columns, next_cell(&at), widths[i % table->columns],
			 out);
	gt_buf_release(&table->text);
	table->cells = 0;
}

static void put_markdown_cell(struct gt_str cell, struct gt_buf *out)
{
	gt_buf_byte(out, ' ');
	for (size_t i = 0; i < cell.len; i++) {
		if (strchr("\\`*_|<>[]", cell.ptr[i]))
			gt_buf_byte(out, '\\');
		gt_buf_byte(out, cell.ptr[i]);
	}
	gt_buf_text(out, " |");
}

void gt_text_table_markdown(struct gt_text_table *table, struct gt_buf *out)
{
	const char *at = table->text.data;

	if (table->text.failed) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < table->columns; i++)
		gt_buf_printf(out, "| %s ", table->titles[i]);
	gt_buf_text(out, "|\n|");
	for (size_t i = 0; i < table->columns; i++)
		gt_buf_text(out, i + 1 == table->columns ? "---|\n" : "---:|");
	for (size_t i = 0; i < table->cells; i++) {
		if (i % table->columns == 0)
			gt_buf_byte(out, '|');
		put_markdown_cell(next_cell(&at), out);
		if ((i + 1) % table->columns == 0)
			gt_buf_byte(out, '\n');
	}
	gt_buf_release(&table->text);
	table->cells = 0;
}
