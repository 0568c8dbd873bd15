/*
 * gtrace.h - mark steps in your own program. Header only: nothing to link, and a no-op of a few
 * instructions when the program does not run under 'gtrace run'.
 */
#ifndef GTRACE_H
#define GTRACE_H

#endif
