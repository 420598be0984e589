DROP INDEX public.things_note;
ALTER TABLE public.things DROP CONSTRAINT things_have_ids;
DROP FUNCTION public.count_things();
