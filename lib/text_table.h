/*
 * text_table.h - rows and columns as text: aligned for a terminal, or as Markdown.
 */
#ifndef GT_TEXT_TABLE_H
#define GT_TEXT_TABLE_H

#include "base.h"
#include "buf.h"
#include "str.h"

#define GT_TEXT_COLUMNS_MAX 20

/* All columns are aligned right but the last, which holds names and is cut to the width. */
struct gt_text_table { /* { 0 } but for titles and columns */
	const char *const *titles;
	size_t columns;
	size_t cells;
	struct gt_buf text; /* of the cells, each ends in '\0' and contains no other */
};

/* Append the next cell; a row is full after 'columns' of them. */
void gt_text_cell(struct gt_text_table *table, const char *fmt, ...) GT_PRINTF(2, 3);
void gt_text_cell_name(struct gt_text_table *table, struct gt_str name); /* made safe */
/* The same, cut to at most width columns, with end behind it within them. */
void gt_text_cell_cut(struct gt_text_table *table, struct gt_str name, const char *end,
		      size_t width);

/* Append the table under its titles to out, and empty it. width: columns of the terminal. */
void gt_text_table_print(struct gt_text_table *table, size_t width, struct gt_buf *out);
void gt_text_table_markdown(struct gt_text_table *table, struct gt_buf *out);

#endif
